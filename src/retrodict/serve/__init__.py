"""Imputation over HTTP: ``retrodict serve``. Needs the extra ``retrodict[serve]``."""
