"""What the cost does to the one answer: prints a table."""

import retrodict as rd

# Type 1 follows type 0 within the hour; half of the 0s are missing.
model = rd.Hawkes(base=[0.5, 0.05], excitation=[[0.0, 0.9], [0.0, 0.0]], decay=3.0)
missing = rd.ByType([0.5, 0.0])
observed, hidden = missing.censor(rd.simulate(model, 100, end=12.0, seed=0))
posterior = rd.impute(observed, rd.Filtering(model, missing), particles=400, seed=0)
print(f"{hidden.num_events} events are missing, {posterior.expected_count().sum():.0f} are expected to be\n")

# A cost is the time by which moving an event is as bad as an event too many or too few.
costs = [0.1, 0.3, 1.0, 3.0, 10.0]
print("cost (h)   imputed   expected distance   real distance   predicting nothing")
for cost, decision in zip(costs, posterior.decide(costs), strict=True):
    real = sum(rd.transport(a, b, cost).distance for a, b in zip(decision.streams, hidden, strict=True))
    told, nothing = decision.risk.sum(), cost * hidden.num_events
    print(f"{cost:8} {decision.streams.num_events:9} {told:19.1f} {real:15.1f} {nothing:20.1f}")
