"""Load tests of `pytest --weir`: what `weir.pytest_plugin` needs once there is a load test."""
