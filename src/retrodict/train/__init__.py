"""Fitting models (and proposals) by gradient ascent, on PyTorch Lightning."""
