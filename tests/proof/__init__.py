"""The promises under real faults: short forms run by default, long ones with `pytest -m proof`."""
