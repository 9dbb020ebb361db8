// Search where the site is opened as files: browsers start no worker there, so that it runs in a frame of the page.
if (location.protocol === 'file:') {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      this.frame.title = 'search';
      document.body.append(this.frame);
      const inner = this.frame.contentWindow, script = inner.document.createElement('script');
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent('message', { data }));
      this.loaded = new Promise((resolve) => { script.onload = resolve; });
      script.src = url;
      inner.document.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent('message', { data })));
    }

    terminate() { this.frame.remove(); }
  };
  window.Worker = window.IFrameWorker;
}
