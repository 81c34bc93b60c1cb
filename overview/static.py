"""How static files are stored: compressed, under hashed names, ES module imports rewritten too."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """WhiteNoise's storage, with `import … from "./x.js"` rewritten to the hashed name."""

    support_js_module_import_aggregation = True
