"""The device's state, through NVML."""
import ctypes


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t of nvml.h."""
    _fields_ = [("field", ctypes.c_uint), ("scope", ctypes.c_uint),
                ("timestamp", ctypes.c_longlong), ("latency_us", ctypes.c_longlong),
                ("type", ctypes.c_int), ("status", ctypes.c_int), ("value", ctypes.c_ulonglong)]


POWER_NOW = 186  # NVML_FI_DEV_POWER_INSTANT; the usual query answers with the mean of a second
UNSIGNED = 1  # NVML_VALUE_TYPE_UNSIGNED_INT
POWER_CAP = 0x4


class Nvml:
    """NVML through ctypes. What it cannot tell is None."""

    THROTTLE_WORDS = {POWER_CAP: "power-cap", 0x8: "hw-slowdown", 0x10: "sync-boost",
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

    def watts_now(self):
        power = FieldValue(field=POWER_NOW)
        function = getattr(self.library, "nvmlDeviceGetFieldValues", None) if self.device else None
        if (function is None or function(self.device, 1, ctypes.byref(power)) != 0
                or power.status != 0 or power.type != UNSIGNED):
            return None
        return (power.value & 0xffffffff) / 1000

    def is_power_limited(self):
        """At the cap, or so near to it that a load which goes on will get there."""
        limit = self.watts("nvmlDeviceGetEnforcedPowerLimit")
        return bool(self.throttle_reasons() & POWER_CAP
                    or limit and (self.watts_now() or 0) > 0.9 * limit)

    def sm_mhz(self):
        return self.read("nvmlDeviceGetClockInfo", 1)

    def state(self):
        return {"sm_mhz": self.sm_mhz(),
                "mem_mhz": self.read("nvmlDeviceGetClockInfo", 2),
                "temperature_c": self.read("nvmlDeviceGetTemperature", 0),
                "power_w": self.watts_now() or self.watts("nvmlDeviceGetPowerUsage")}

    def throttle_reasons(self):
        return self.read("nvmlDeviceGetCurrentClocksThrottleReasons",
                         type_=ctypes.c_ulonglong) or 0

    def throttle_flags(self):
        reasons = self.throttle_reasons()
        return [f"throttle={word}" for bit, word in self.THROTTLE_WORDS.items() if reasons & bit]
