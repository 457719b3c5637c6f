"""GPUs as the driver's own library tells them: NVML through ctypes, nothing installed.

Symbols carry a version in their name and come and go with the driver: each is looked up
by its newest name first, and one that is missing leaves its fact unread. Structures and
return codes: docs.nvidia.com/deploy/nvml-api.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple

from eagleops.remote import driver_faults
from eagleops.remote.gpu_facts import Facts, Reading, clock_reasons, unread

LIBRARY = "libnvidia-ml.so.1"

SUCCESS = 0
INSUFFICIENT_SIZE = 7
# Ours, outside NVML's range: the library has no symbol of that name.
MISSING = -1

_TEMPERATURE_GPU = 0
_CLOCK_SM, _CLOCK_MEM = 1, 2
_NOT_AVAILABLE = 2**64 - 1
_MIB = 1024 * 1024
# Lists grow while they are asked for; a list that outgrows each try is taken as unread.
_LIST_TRIES, _LIST_LIMIT = 4, 4096


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64)]


class _MemoryV2(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64),
        ("free", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
    ]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Pci(ctypes.Structure):
    _fields_ = [
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pci_device_id", ctypes.c_uint),
        ("pci_subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    ]


class _ProcessV1(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_uint64)]


class _ProcessV2(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_uint64),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class _ProcessV3(ctypes.Structure):
    """Of the first 535 drivers alone; later ones went back to the shorter structure."""

    _fields_ = [*_ProcessV2._fields_, ("protected", ctypes.c_uint64)]


class NvmlUnavailable(Exception):
    """NVML cannot be used here.

    Attributes:
        driver_said: The driver's own words, or an empty string where there is no library.
    """

    def __init__(self, message: str, driver_said: str = "") -> None:
        super().__init__(message)
        self.driver_said = driver_said


class Nvml:
    """The opened library. It holds the GPUs' device files until it is closed.

    Args:
        library: Its file, or its name for the dynamic linker.

    Raises:
        NvmlUnavailable: if it does not load or does not initialise.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise NvmlUnavailable("{} did not load: {}".format(library, error)) from None
        code = self._call(("nvmlInit_v2", "nvmlInit"))
        if code != SUCCESS:
            said = "Failed to initialize NVML: {}".format(self._error(code))
            raise NvmlUnavailable(said, said)

    def close(self) -> None:
        """Lets go of the device files."""
        self._call(("nvmlShutdown",))

    def read(self) -> Reading:
        """Every fact of every GPU, with the processes in its lists."""
        handles, problem = self._handles()
        gpus = [self._facts(index, handle) for index, handle in handles]
        return Reading(gpus, problem, self._text(("nvmlSystemGetDriverVersion",)))

    def memory(self) -> Reading:
        """``used_mib`` of each GPU, all else unread."""
        handles, problem = self._handles()
        gpus = []
        for index, handle in handles:
            gpu = unread(index)
            gpu["used_mib"] = self._memory(handle)["used_mib"]
            gpus.append(gpu)
        return Reading(gpus, problem)

    def state(self) -> Reading:
        """What changes while a GPU works; names, limits and processes unread."""
        handles, problem = self._handles()
        gpus = []
        for index, handle in handles:
            gpu = unread(index)
            gpu["used_mib"] = self._memory(handle)["used_mib"]
            gpu.update(self._activity(handle))
            gpus.append(gpu)
        return Reading(gpus, problem)

    def _call(self, names: Tuple[str, ...], *arguments: Any) -> int:
        """The return code of the first function in ``names`` that the library has."""
        for name in names:
            try:
                function = getattr(self._library, name)
            except AttributeError:
                continue
            return int(function(*arguments))
        return MISSING

    def _has(self, name: str) -> bool:
        return hasattr(self._library, name)

    def _error(self, code: int) -> str:
        if code == MISSING:
            return "this driver's library lacks the function"
        if self._has("nvmlErrorString"):
            function = self._library.nvmlErrorString
            function.restype = ctypes.c_char_p
            text = function(code)
            if text:
                return "{}".format(text.decode("utf-8", "replace"))
        return "return code {}".format(code)

    def _handles(self) -> Tuple[List[Tuple[int, ctypes.c_void_p]], Optional[str]]:
        count = ctypes.c_uint()
        code = self._call(("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"), ctypes.byref(count))
        if code != SUCCESS:
            return [], self._problem("the GPUs cannot be counted", code)
        if count.value == 0:
            return [], driver_faults.explain("No devices were found")
        handles, problems = [], []
        names = ("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
        for index in range(count.value):
            handle = ctypes.c_void_p()
            code = self._call(names, ctypes.c_uint(index), ctypes.byref(handle))
            if code == SUCCESS:
                handles.append((index, handle))
            else:
                said = "Unable to determine the device handle for GPU{}".format(index)
                problems.append(self._problem(said, code))
        return handles, " ".join(problems) or None

    def _problem(self, said: str, code: int) -> str:
        line = "{}: {}".format(said, self._error(code))
        return driver_faults.explain(line, driver_faults.module_version()) or line

    def _facts(self, index: int, handle: ctypes.c_void_p) -> Facts:
        gpu = unread(index)
        gpu.update(self._memory(handle))
        limit_mw = self._number(
            ("nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetEnforcedPowerLimit"), handle
        )
        gpu.update(self._activity(handle))
        gpu.update(
            uuid=self._text(("nvmlDeviceGetUUID",), handle),
            name=self._text(("nvmlDeviceGetName",), handle),
            bus_id=self._bus_id(handle),
            minor=self._number(("nvmlDeviceGetMinorNumber",), handle),
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            processes=self._processes(handle),
        )
        return gpu

    def _activity(self, handle: ctypes.c_void_p) -> Facts:
        """What a GPU does at this moment, and how it is held back."""
        power_mw = self._number(("nvmlDeviceGetPowerUsage",), handle)
        clock, temperature = ("nvmlDeviceGetClockInfo",), ("nvmlDeviceGetTemperature",)
        return {
            "temperature_c": self._number(temperature, handle, ctypes.c_int(_TEMPERATURE_GPU)),
            "power_w": None if power_mw is None else power_mw / 1000,
            "sm_clock_mhz": self._number(clock, handle, ctypes.c_int(_CLOCK_SM)),
            "mem_clock_mhz": self._number(clock, handle, ctypes.c_int(_CLOCK_MEM)),
            "utilization_pct": self._utilization(handle),
            "throttle_reasons": self._throttle_reasons(handle),
            "pcie_gen": self._number(("nvmlDeviceGetCurrPcieLinkGeneration",), handle),
            "pcie_width": self._number(("nvmlDeviceGetCurrPcieLinkWidth",), handle),
        }

    def _number(self, names: Tuple[str, ...], *arguments: Any) -> Optional[int]:
        value = ctypes.c_uint()
        code = self._call(names, *arguments, ctypes.byref(value))
        return value.value if code == SUCCESS else None

    def _text(self, names: Tuple[str, ...], *arguments: Any) -> Optional[str]:
        buffer = ctypes.create_string_buffer(96)
        code = self._call(names, *arguments, buffer, ctypes.c_uint(len(buffer)))
        return buffer.value.decode("utf-8", "replace") if code == SUCCESS else None

    def _memory(self, handle: ctypes.c_void_p) -> Dict[str, Optional[int]]:
        newer = _MemoryV2(version=ctypes.sizeof(_MemoryV2) | 2 << 24)
        code = self._call(("nvmlDeviceGetMemoryInfo_v2",), handle, ctypes.byref(newer))
        if code == SUCCESS:
            reserved: Optional[int] = newer.reserved // _MIB
            used, total = newer.used // _MIB, newer.total // _MIB
        else:
            # The first version counts what the driver reserves as used.
            older = _Memory()
            code = self._call(("nvmlDeviceGetMemoryInfo",), handle, ctypes.byref(older))
            if code != SUCCESS:
                return {"used_mib": None, "total_mib": None, "reserved_mib": None}
            used, total, reserved = older.used // _MIB, older.total // _MIB, None
        return {"used_mib": used, "total_mib": total, "reserved_mib": reserved}

    def _utilization(self, handle: ctypes.c_void_p) -> Optional[int]:
        rates = _Utilization()
        code = self._call(("nvmlDeviceGetUtilizationRates",), handle, ctypes.byref(rates))
        return rates.gpu if code == SUCCESS else None

    def _throttle_reasons(self, handle: ctypes.c_void_p) -> Optional[List[str]]:
        mask = ctypes.c_uint64()
        names = (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        )
        code = self._call(names, handle, ctypes.byref(mask))
        return clock_reasons(mask.value) if code == SUCCESS else None

    def _bus_id(self, handle: ctypes.c_void_p) -> Optional[str]:
        pci = _Pci()
        if self._call(("nvmlDeviceGetPciInfo_v3",), handle, ctypes.byref(pci)) != SUCCESS:
            return None
        return "{}".format(pci.bus_id.decode("utf-8", "replace"))

    def _processes(self, handle: ctypes.c_void_p) -> List[Facts]:
        """Compute and graphics processes, each once, by PID."""
        used_mib: Dict[int, Optional[int]] = {}
        for kind in ("Compute", "Graphics"):
            for process in self._process_list(kind, handle):
                used = None if process.used == _NOT_AVAILABLE else process.used // _MIB
                if used_mib.get(process.pid) is None:
                    used_mib[process.pid] = used
        return [{"pid": pid, "used_mib": used_mib[pid]} for pid in sorted(used_mib)]

    def _process_list(self, kind: str, handle: ctypes.c_void_p) -> List[Any]:
        name, entry = self._process_function(kind)
        count = ctypes.c_uint(32)
        for _ in range(_LIST_TRIES):
            entries = (entry * count.value)()
            code = self._call((name,), handle, ctypes.byref(count), entries)
            if code == SUCCESS:
                return list(entries)[: count.value]
            if code != INSUFFICIENT_SIZE:
                break
            count = ctypes.c_uint(min(count.value, _LIST_LIMIT) * 2 + 8)
        return []

    def _process_function(self, kind: str) -> Tuple[str, Any]:
        name = "nvmlDeviceGet{}RunningProcesses".format(kind)
        if self._has(name + "_v3"):
            # The drivers whose structure is longer have the one symbol and not the other.
            longer = self._has("nvmlDeviceGetConfComputeMemSizeInfo") and not self._has(
                "nvmlDeviceGetRunningProcessDetailList"
            )
            return name + "_v3", _ProcessV3 if longer else _ProcessV2
        if self._has(name + "_v2"):
            return name + "_v2", _ProcessV2
        return name, _ProcessV1
