"""What operators see of the host: probes, metrics, log lines, and connectors that need care."""
