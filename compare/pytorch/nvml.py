"""The device's state, through NVML."""
import ctypes


class Nvml:
    """NVML through ctypes. What it cannot tell is None."""

    THROTTLE_WORDS = {0x4: "power-cap", 0x8: "hw-slowdown", 0x10: "sync-boost",
                      0x20: "sw-thermal", 0x40: "hw-thermal", 0x80: "power-brake"}

    def __init__(self, uuid):
        self.device = None
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            initialized = self.library.nvmlInit_v2() == 0
        except (OSError, AttributeError):
            return
        device = ctypes.c_void_p()
        if initialized and self.library.nvmlDeviceGetHandleByUUID(
                uuid.encode(), ctypes.byref(device)) == 0:
            self.device = device

    def read(self, name, *arguments, type_=ctypes.c_uint):
        value = type_()
        function = getattr(self.library, name, None) if self.device else None
        if function is None or function(self.device, *arguments, ctypes.byref(value)) != 0:
            return None
        return value.value

    def driver(self):
        text = ctypes.create_string_buffer(96)
        if not self.device or self.library.nvmlSystemGetDriverVersion(text, len(text)) != 0:
            return None
        return text.value.decode()

    def watts(self, name):
        milliwatts = self.read(name)
        return None if milliwatts is None else milliwatts / 1000

    def sm_mhz(self):
        return self.read("nvmlDeviceGetClockInfo", 1)

    def state(self):
        return {"sm_mhz": self.sm_mhz(),
                "mem_mhz": self.read("nvmlDeviceGetClockInfo", 2),
                "temperature_c": self.read("nvmlDeviceGetTemperature", 0),
                "power_w": self.watts("nvmlDeviceGetPowerUsage")}

    def throttle_flags(self):
        reasons = self.read("nvmlDeviceGetCurrentClocksThrottleReasons",
                            type_=ctypes.c_ulonglong) or 0
        return [f"throttle={word}" for bit, word in self.THROTTLE_WORDS.items() if reasons & bit]
