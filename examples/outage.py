"""An outage of one hour hides all events of a bursty stream: how many? Prints a table."""

import numpy as np

import retrodict as rd

# Alarms come in bursts: each makes further ones likely for about half an hour. Times are in hours.
model = rd.Hawkes(base=[0.5], excitation=[[0.8]], decay=2.0)
streams = rd.simulate(model, 200, end=12.0, seed=0)

# The recorder was off from hour 5 to hour 6.
outage = rd.Windows([(5.0, 6.0)])
observed, hidden = outage.censor(streams)
posterior = rd.impute(observed, rd.Filtering(model, outage), particles=400, seed=0)

# Streams with many alarms around the outage lost more than quiet ones, and the posterior knows.
around = np.array([np.sum(np.abs(s.times - 5.5) < 1.5) for s in observed])
usual = observed.num_events / (11.0 * len(observed))
print("alarms seen around   streams   usual rate   imputed   really lost")
for low, high in ((0, 1), (1, 3), (3, 6), (6, 1000)):
    rows = (around >= low) & (around < high)
    expected, lost = posterior.expected_count()[rows].mean(), hidden.lengths[rows].mean()
    name = f"{low} to {high - 1}" if high < 1000 else f"{low} or more"
    print(f"{name:18} {rows.sum():9} {usual:12.2f} {expected:9.2f} {lost:13.2f}")
