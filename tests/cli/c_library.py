"""twinkle/c.h through ctypes, in a Python process with the LibTorch that the runtime was built for."""

import ctypes
import json


class TwinkleError(Exception):
    def __init__(self, code, error):
        super().__init__(f"{code}: {error}")
        self.code, self.error = code, error


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        for name in ("twinkle_version", "twinkle_last_error", "twinkle_last_error_json"):
            getattr(self.c, name).restype = ctypes.c_char_p
        self.c.twinkle_clear_kernels.restype = None

    def _call(self, name, *arguments):
        texts = [a.encode() if isinstance(a, str) else a for a in arguments]
        code = getattr(self.c, name)(*texts)
        if code:
            raise TwinkleError(code, json.loads(self.c.twinkle_last_error_json()))

    def clear(self):
        self.c.twinkle_clear_kernels()

    def register(self, config):
        self._call("twinkle_register_kernels", str(config))

    def load_kernels(self, model, dirs=None):
        self._call("twinkle_load_kernels", str(model), dirs)

    def kernelize(self, model, output, mapping=None, **options):
        report = ctypes.c_void_p()
        self._call("twinkle_kernelize_file", str(model), str(mapping) if mapping else None, str(output),
                   json.dumps(options), ctypes.byref(report))
        text = ctypes.string_at(report).decode()
        self.c.twinkle_free(report)
        return json.loads(text)
