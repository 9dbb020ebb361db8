"""Nobody knows how much goes missing: learn the rates from incomplete streams. Prints a table."""

import retrodict as rd

# With a model of complete streams at hand ...
model = rd.Hawkes(base=[0.6, 0.1], excitation=[[0.2, 0.7], [0.0, 0.1]], decay=2.0)
streams = rd.simulate(model, 60, end=15.0, seed=0)

# ... 60 % of type 0 and 20 % of type 1 get lost, and we pretend not to know.
observed, _ = rd.ByType([0.6, 0.2]).censor(streams)
guess = rd.ByType([0.3, 0.3])
learned = rd.learn_missing(rd.Filtering(model, guess), observed)
print(learned.rates.to_frame().round(3).to_string(index=False))
print("truth: 0.6 and 0.2")
