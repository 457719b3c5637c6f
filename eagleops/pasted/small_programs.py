"""Programs that stand around a launch and have no part in a profile."""

from __future__ import annotations

# What stands around a launch and has no part in a profile.
SMALL = frozenset({
    ":", "[", "alias", "awk", "break", "cat", "chmod", "chown", "clear", "continue", "cp", "curl",
    "cut", "date", "df", "disown", "dmesg", "du", "echo", "egrep", "exit", "false", "find",
    "free", "git", "grep", "head", "hf", "hostname", "htop", "huggingface-cli", "id", "ip",
    "jobs", "let", "ln", "local", "logger", "ls", "lsof", "mkdir", "modprobe", "module", "mount",
    "mv", "nc", "netstat", "nproc", "nvidia-smi", "ping", "pip", "pip3", "printf", "ps", "pwd",
    "read", "return", "rm", "sed", "set", "shift", "shopt", "sleep", "sort", "ss", "stat", "sync",
    "sysctl", "tail", "tee", "test", "top", "touch", "tr", "trap", "true", "type", "ulimit",
    "umask", "uname", "uniq", "unset", "wait", "watch", "wc", "wget", "which", "whoami", "xargs",
})  # fmt: skip
KILLS = frozenset({"kill", "pkill", "killall", "fuser", "skill"})
TALK = frozenset({"echo", "printf"})
