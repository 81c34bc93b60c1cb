"""The production-like set under load: many open pages, many connectors, and a reconnect storm."""
