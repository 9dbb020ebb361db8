// What the words of the page mean, beside where they stand: each part is unfolded on demand.
const GLOSSARY = {
  overview: ['What these numbers mean', [
    ['stream', 'The events of one thing that was watched: a person, a machine, a case.'],
    ['expected missing', 'How many events are missing on average over all guesses; it need not be a whole number.'],
    ['90 %', 'The true number of missing events is in this interval with a probability of 90 %, if the model is right about these streams: '
      + 'what may be wrong with the model is not in it.'],
    ['imputed', 'Events of the one answer that is shown. It has fewer than are expected where nobody could say when they happened.'],
    ['doubtful', 'A stream with a warning of its own: look at it before you use what was imputed there.'],
  ]],
  cost: ['What is this cost?', [
    ['cost', 'What an event too many, or one left out, counts for: as much as an event put this far from its true time. '
      + 'The answer has the events that make the whole error smallest on average.'],
    ['timid and bold', 'At a low cost only events whose time is well known are imputed; at a high cost less certain ones can be, too. '
      + 'Events can also move or go, so that their number need not grow.'],
    ['expected distance', 'That error, averaged over all guesses: all costs and shifts in time added up. Predicting nothing pays the cost for every missing event.'],
  ]],
  streams: ['What surprise, families and the marks mean', [
    ['surprise', 'How much less plausible the model finds the observed events of this stream than those of the middle stream, for each event. '
      + 'Around 0 is usual; 1 is 2.7 times as unlikely for every event. (The unit is the nat, of the natural logarithm.)'],
    ['effective families', 'How many independent guesses are left where there are fewest. Guesses that share their past count as one; '
      + 'below 10 what is imputed there looks surer than it is.'],
    ['window', 'A time in which more goes missing than at others, such as an outage: grey ground on the timeline.'],
    ['probability', 'How many of 100 such imputed events were really there.'],
    ['90 % interval', 'The times between which 9 of 10 such events happened.'],
    ['belief', 'The rate at which missing events are expected: high where one probably was. All types of a stream share one scale, '
      + 'on which four times the rate is drawn twice as high.'],
    ['draws', 'Twenty complete guesses of what was missing, one a line: where they agree, the answer is sure.'],
  ]],
  score: ['How an answer is scored', [
    ['distance', 'Imputed events are matched to missing ones of their type: the time between the two of each pair, and the cost for each that is left alone, on either side. 0 is perfect.'],
    ['predicting nothing', 'The distance of an answer without any event: the cost for every missing one. An answer with a greater distance is worse than none.'],
    ['intervals that hold the true time', 'Of the imputed events that were matched. It should be about 90 %; fewer are too sure, more too cautious.'],
  ]],
  check: ['How to read the check', [
    ['how it is made', 'Events of complete streams were hidden, imputed, and compared with what they really were.'],
    ['rank', 'Where the true number of hidden events falls among the guesses, from 0 (below all) to 1 (above all). Any place is as likely as another if the guesses are right: '
      + 'a hill in the middle says that they are too cautious, high ends that they are too sure.'],
    ['constant rates', 'What is imputed if events come at random at a constant rate: a simple answer that a good model beats.'],
    ['standard error (s.e.)', 'How far a number may be off by chance; it is within two of them 95 times out of 100.'],
  ]],
  made: ['What these words mean', [
    ['model', 'What was learned from complete streams: the rate of each type of event after any history.'],
    ['calendar', 'What the model knows of the clock: hours of the day and days of the week at which events are more or less frequent.'],
    ['ends', 'Learned where nearly all streams end exactly at an event: the model then knows when a stream ends.'],
    ['proposal', 'How missing events are guessed: “smoothing” looks at what was observed before and after, “filtering” only at what was before.'],
    ['particles', 'The weighted guesses of a stream. More of them are slower and more exact.'],
    ['resampling', 'How guesses that what was observed speaks against are replaced by copies of better ones.'],
    ['engine', 'Which program did it; all give the same answers up to chance.'],
    ['seed', 'The same seed gives the same guesses again.'],
  ]],
};

function fillGlossary() {
  for (const box of document.querySelectorAll('[data-words]')) {
    const [summary, words] = GLOSSARY[box.dataset.words];
    box.classList.add('words', 'small');
    box.hidden = false;
    box.append(element('summary', {}, summary),
      element('dl', {}, ...words.flatMap(([word, meaning]) => [element('dt', {}, word), element('dd', {}, meaning)])));
  }
}
