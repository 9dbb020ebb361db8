"""Sequential Monte Carlo over the missing events (Algorithm 1 of the paper), and the posterior it leaves."""
