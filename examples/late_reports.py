"""Cases are reported days late, so the last days look too quiet: writes late_reports.png."""

import numpy as np
from matplotlib import pyplot as plt

import retrodict as rd

# Cases of 60 towns over 30 days; each case calls for others in the following days.
model = rd.Hawkes(base=[0.25], excitation=[[0.6]], decay=0.5)
towns = rd.simulate(model, 60, end=30.0, seed=0)

# A report takes four days on average, and the data were pulled on day 30.
delay = rd.ReportingDelay("gamma", mean=4.0, shape=2.0)
reported, late = delay.censor(towns)
posterior = rd.impute(reported, rd.Filtering(model, delay), particles=200, seed=0)

days = np.arange(31.0)
seen = np.histogram(reported.event_times, days)[0]
truth = np.histogram(towns.event_times, days)[0]
draws = [np.histogram(draw.event_times, days)[0] + seen for draw in posterior.draws(200)]
low, middle, high = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)

plt.figure(figsize=(8, 3), layout="constrained")
plt.stairs(seen, days, fill=True, color="#0072B2", alpha=0.5, label="reported so far")
plt.fill_between(days[:-1] + 0.5, low, high, color="#D55E00", alpha=0.3, label="90 % interval")
plt.plot(days[:-1] + 0.5, middle, color="#D55E00", label="imputed")
plt.plot(days[:-1] + 0.5, truth, "k.", label="truth")
plt.xlabel("day")
plt.ylabel("cases")
plt.legend(frameon=False, ncols=4)
plt.savefig("late_reports.png")
inside = np.mean((low <= truth) & (truth <= high))
print(f"last five days: {seen[-5:].sum()} reported, {middle[-5:].sum():.0f} imputed in all, {truth[-5:].sum()} true")
print(f"{100 * inside:.0f} % of the days lie in the interval; wrote late_reports.png")
