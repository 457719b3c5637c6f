"""What importing costs: nobody pays for SSH who does not use it."""

import subprocess
import sys


def test_the_ssh_transport_imports_without_fabric():
    """Fabric and Paramiko are imported by the first connection, not by the transport's module."""
    code = (
        "import sys, eagleops.session, eagleops.transport.ssh, eagleops.transport.inside\n"
        "print(sorted({'fabric', 'paramiko', 'invoke', 'cryptography'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert answer.stdout == "[]\n"
