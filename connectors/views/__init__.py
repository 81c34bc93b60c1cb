"""The pages that change connectors, a module each. The two that show them are in `overview`,
because they show facets: `overview/connector_pages.py`."""
