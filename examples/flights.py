"""Hide the departures of real flights, impute them, and draw one aircraft: writes flights.png."""

import retrodict as rd
from retrodict.datasets import flights_demo, flights_sample

# 900 streams of flights and a smoother that was trained on most of them come with the package.
_, _, test = flights_demo.sample_splits(flights_sample())
smoother = flights_demo.flights_smoother()

# The smoother's mechanism hides every departure. `hidden` is the truth, which imputation does not see.
observed, hidden = smoother.missingness.censor(test[:20])
posterior = rd.impute(observed, smoother, particles=200, seed=0)

# One answer: an event too many or too few costs as much as moving one by an hour.
answer = posterior.consensus(cost=1.0)
distance = sum(rd.transport(a, b, cost=1.0).distance for a, b in zip(answer, hidden, strict=True))
print(f"{posterior.expected_count().sum():.0f} departures are expected to be missing, {hidden.num_events} are")
print(f"distance to the truth: {distance:.0f} hours; predicting nothing would be {hidden.num_events:.0f}")

posterior.plot(2, "flights.png", cost=1.0, truth=hidden)
print("wrote flights.png")
