#!/bin/bash
# conformance-client.sh URL: a client for the conformance suite, which names the scenario in a variable. It logs in to the server if the
# scenario is about that, and calls a tool through the gateway. The browser of the login follows where it is led.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export HOME=$home XDG_CONFIG_HOME=$home XDG_STATE_HOME=$home XDG_CACHE_HOME=$home BROWSER=$home/browser
printf '#!/bin/sh\nexec curl -sSL -o /dev/null "$1"\n' > "$BROWSER"
chmod +x "$BROWSER"
mkdir "$home/work"
cd "$home/work"
printf '{"mcpServers": {"s": {"type": "http", "url": "%s"}}}' "${!#}" > "$home/servers.json"

tool=none args='{}'
case $MCP_CONFORMANCE_SCENARIO in
auth/*)
	timeout 5 "$TOOLHOST" mcp login s --mcp-config "$home/servers.json"
	tool=test-tool
	;;
tools_call) tool=add_numbers args='{"a": 5, "b": 3}' ;;
sse-retry) tool=test_reconnection ;;
http-invalid-tool-headers) tool=valid_tool ;;
esac
call() { timeout 20 "$TOOLHOST" call "mcp__s__$tool" "$args" --allow mcp__s --mcp-config "$home/servers.json"; }
call
case $MCP_CONFORMANCE_SCENARIO in
auth/scope-step-up|auth/scope-retry-limit) # as the call says
	timeout 5 "$TOOLHOST" mcp login s --mcp-config "$home/servers.json"
	call
	;;
esac
exit 0 # the suite judges by what the server has seen
