#!/usr/bin/env python3
"""conformance-client.py URL: a client for the conformance suite, which names the scenario in a variable.

It logs in to the server if the scenario is about that, and calls tools through the gateway of toolhost. The browser of the login
follows where it is led. The suite judges by what the server has seen.
"""
import json, os, stat, subprocess, sys, tempfile

scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
toolhost = os.environ["TOOLHOST"]


def prepare(home):
    """makes a home with a browser, and the servers of the scenario."""
    browser = os.path.join(home, "browser")
    with open(browser, "w") as f:
        f.write('#!/bin/sh\nexec curl -sSL -o /dev/null "$1"\n')
    os.chmod(browser, stat.S_IRWXU)
    for name in "HOME XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME".split():
        os.environ[name] = home
    os.environ["BROWSER"] = browser
    server = {"type": "http", "url": sys.argv[-1]}
    if "client_id" in context:
        server["oauth"] = {"clientId": context["client_id"]}
        if "client_secret" in context:
            server["oauth"]["clientSecret"] = context["client_secret"]
        if "private_key_pem" in context:
            server["oauth"]["privateKeyFile"] = os.path.join(home, "key.pem")
            with open(server["oauth"]["privateKeyFile"], "w") as f:
                f.write(context["private_key_pem"])
        if scenario.startswith("auth/client-credentials"):
            server["oauth"]["grant"] = "client_credentials"
        if "valid_jwt" in context:
            server["oauth"] |= {"grant": "jwt-bearer", "assertionFile": os.path.join(home, "token")}
            with open(server["oauth"]["assertionFile"], "w") as f:
                f.write(context["valid_jwt"])
    if scenario == "auth/basic-cimd":
        server["oauth"] = {"clientId": "https://conformance-test.local/client-metadata.json"}
    with open(os.path.join(home, "servers.json"), "w") as f:
        json.dump({"mcpServers": {"s": server}}, f)
    work = os.path.join(home, "work")
    os.mkdir(work)
    os.chdir(work)
    return ["--mcp-config", os.path.join(home, "servers.json")]


class Host:
    """toolhost over stdio, for a client that accepts every form with its defaults."""

    def __init__(self, flags):
        self.process = subprocess.Popen([toolhost, "--allow", "mcp__s"] + flags, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last = 0
        self.request("initialize", protocolVersion="2025-11-25", capabilities={"elicitation": {"form": {}}}, clientInfo={"name": "client", "version": "1"})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, **params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                fields = message["params"]["requestedSchema"]["properties"]
                content = {name: field.get("default", True) for name, field in fields.items() if "default" in field or field["type"] == "boolean"}
                self.send({"id": message["id"], "result": {"action": "accept", "content": content}})
            elif message.get("id") == self.last and "method" not in message:
                return message.get("result", {})
        return {}

    def call(self, name, arguments):
        return self.request("tools/call", name="mcp__s__" + name, arguments=arguments)


def main(flags):
    def login():
        subprocess.run([toolhost, "mcp", "login", "s"] + flags, timeout=20)

    if scenario.startswith("auth/") and not scenario.startswith(("auth/client-credentials", "auth/wif")):
        login()
    host = Host(flags)
    tools = [t for t in host.request("tools/list").get("tools", []) if t["name"].startswith("mcp__s__")]
    arguments = {"tools_call": {"a": 5, "b": 3}, "http-invalid-tool-headers": {"region": "eu"}}.get(scenario, {})
    calls = [(c["name"], c["arguments"]) for c in context.get("toolCalls", [])]
    schemas = {t["name"].removeprefix("mcp__s__"): t["inputSchema"] for t in tools}
    if "json_schema_echo" in schemas:  # it wants the schema of the other tool
        calls.append(("json_schema_echo", {"schema": next(schema for name, schema in schemas.items() if name != "json_schema_echo")}))
    for name in schemas if not calls else []:
        calls.append((name, arguments))
    for name, arguments in calls or [("test-tool", {})]:
        host.call(name, arguments)
    if scenario in ("auth/scope-step-up", "auth/scope-retry-limit", "auth/authorization-server-migration"):  # as the call says
        login()
        host.call("test-tool", {})
    host.process.stdin.close()
    host.process.wait(20)


with tempfile.TemporaryDirectory() as home:
    main(prepare(home))
