"""One HTML file to look at all imputed streams with: content, packing, and the page's own scripts and styles."""
