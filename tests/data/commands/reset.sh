ssh root@192.0.2.6 'pct exec 129 -- bash -c "ps aux | grep python3 | grep -v grep | awk \"{print \\\$2}\" | xargs -r kill -9; sleep 2; fuser -k /dev/nvidia* 2>/dev/null"'
