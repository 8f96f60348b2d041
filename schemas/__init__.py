"""Schemas and release data, installed as `speclint.schemas` (see `speclint.data`)."""
