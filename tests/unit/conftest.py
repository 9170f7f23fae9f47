"""Settings of hypothesis for all unit tests."""

from hypothesis import HealthCheck, settings

# The duration of an example depends on how busy the machine is, so it has no deadline.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")
