// How far the answer is from the truth, where that is known: overall, by type and of one stream.
const percent = (value) => (value === null ? '–' : `${Number((100 * value).toPrecision(3))} %`);

function showScore(index, answer, words) {
  const { score, cost } = answer;
  document.getElementById('score').hidden = !score;
  if (!score) return;
  const missing = total(score.missing), distance = total(score.distance), aligned = total(score.aligned);
  const far = missing ? `The answer is ${words.amount(distance / missing)} from the truth for each missing event, `
    + `${percent(distance / (cost * missing))} of what predicting nothing is (${words.amount(cost)}). ` : 'Nothing is missing. ';
  const held = aligned ? `${percent(total(score.covered) / aligned)} of the 90 % intervals hold the true time (${count(aligned, 'event')}).`
    : 'No imputed event was matched to a missing one, so that no interval can be judged.';
  document.getElementById('score-words').replaceChildren(element('b', {}, `At cost ${words.amount(cost)}: `), `${far}${held}`);
  const rows = index.types.map((name, k) => [name, k]).filter(([, k]) => score.missingByType[k] || answer.byType[k])
    .sort(([, a], [, b]) => score.missingByType[b] - score.missingByType[a]).map(([name, k]) => {
      const own = score.missingByType[k];
      return [name, number(own), number(answer.byType[k]), own ? number(score.distanceByType[k] / own) : '–',
        percent(own ? score.distanceByType[k] / (cost * own) : null)];
    });
  const unit = words.unit ? ` (${words.unit})` : '';
  document.getElementById('score-types').replaceChildren(makeTable(
    ['type', 'really missing', 'imputed', `distance for each${unit}`, 'of predicting nothing'], rows, 'Score by type'));
}

function streamScore(answer, i, words) {
  if (!answer.score) return '';
  const { missing, distance, aligned, covered } = answer.score;
  const held = aligned[i] ? `, ${number(covered[i])} of ${count(aligned[i], 'interval')} ${aligned[i] === 1 ? 'holds' : 'hold'} the true time` : '';
  return ` · ${number(missing[i])} really missing: distance to the truth ${words.amount(distance[i])} `
    + `(predicting nothing: ${number(answer.cost * missing[i])})${held}`;
}
