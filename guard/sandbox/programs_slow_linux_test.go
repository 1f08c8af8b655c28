//go:build slow

package sandbox

import (
	"strings"
	"testing"
)

func init() {
	const settings = `<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>http://HOST/</url></mirror></mirrors></settings>`
	const build = `repositories { maven { url "http://HOST/" } }\nconfigurations { x }\ndependencies { x "g:n:1" }\ntask t { doLast { configurations.x.files } }`
	const nuget = `<configuration><packageSources><clear/><add key="x" value="http://HOST/index.json" allowInsecureConnections="true"/></packageSources></configuration>`
	const project = `<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup><ItemGroup><PackageReference Include="x" Version="1.0.0"/></ItemGroup></Project>`
	const packages = `{"repositories":[{"type":"composer","url":"http://HOST/"},{"packagist.org":false}],"config":{"secure-http":false},"require":{"x/y":"*"}}`
	programs = append(programs, []program{
		{"wget", "wget -qO- --tries=1 http://HOST/", "the web: HOST", "80", ""},
		{"ssh", "ssh -o BatchMode=yes -o ConnectTimeout=20 HOST true", "raw SSH-2.0-", "22", ""},
		{"npm", "npm view x --registry http://HOST/ --fetch-retries=0 --no-update-notifier --cache $TMPDIR/npm", "http HOST", "80", ""},
		{"pip", "pip download --no-cache-dir --disable-pip-version-check --retries 0 --trusted-host HOST -i http://HOST/ x", "http HOST", "80", ""},
		{"python3", `python3 -c '
import asyncio
async def main():
    r, w = await asyncio.open_connection("HOST", 25)
    w.write(b"asyncio!"); await w.drain(); await r.read()
asyncio.run(main())'`, "raw asyncio!", "25", ""},
		{"cargo", "CARGO_HOME=$TMPDIR/cargo CARGO_NET_RETRY=0 cargo search --registry x --config 'registries.x.index=\"sparse+http://HOST/\"' y", "http HOST", "80", ""},
		{"node", `node -e 'fetch("http://HOST/").then(r => r.text()).then(console.log, e => console.log(e.cause))'`, "the web: HOST", "80", ""},
		{"java", `printf 'class G{public static void main(String[] a)throws Exception{new java.net.URL("http://HOST/").openStream().transferTo(System.out);}}' >$TMPDIR/G.java; java $TMPDIR/G.java`, "the web: HOST", "80", ""},
		{"openssl", "openssl s_client -connect HOST:443 -servername HOST </dev/null", "BEGIN CERTIFICATE", "443", ""},
		{"psql", "PGCONNECT_TIMEOUT=20 psql -h HOST -U x -c 'select 1' x", "raw \x00\x00\x00\x08\x04\xd2", "5432", ""},
		{"perl", `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("HOST:25") or die $@; print $s "perlperl"; $s->flush; <$s>'`, "raw perlperl", "25", ""},
		{"nc", "printf hellohello | nc -w 20 HOST 25", "raw hello", "25", ""},
		{"redis-cli", "redis-cli -h HOST ping", "raw ", "6379", ""},
		{name: "aiohttp", needs: "python3 -c 'import aiohttp'", want: "the web: HOST", port: "80", command: `/usr/bin/python3 -c '
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as s, s.get("http://HOST/") as r: print(await r.text())
asyncio.run(main())'`},
		{name: "bun", command: `bun -e 'console.log(await (await fetch("http://HOST/")).text())'`, want: "the web: HOST", port: "80"},
		{name: "composer", command: "export COMPOSER_HOME=$TMPDIR/c COMPOSER_ALLOW_SUPERUSER=1; cd $TMPDIR && printf '%s' '" + packages + "' >composer.json && composer update --no-interaction",
			want: "http HOST", port: "80"},
		{name: "deno", command: `DENO_DIR=$TMPDIR/deno DENO_NO_UPDATE_CHECK=1 deno eval 'console.log(await (await fetch("http://HOST/")).text())'`, want: "the web: HOST", port: "80"},
		{name: "dig", command: "dig +short HOST", want: "198.18."},
		{name: "dotnet", command: "export DOTNET_CLI_HOME=$TMPDIR/d DOTNET_CLI_TELEMETRY_OPTOUT=1 NUGET_PACKAGES=$TMPDIR/HOST; mkdir -p $TMPDIR/n && cd $TMPDIR/n && printf '%s' '" + nuget + "' >nuget.config && printf '%s' '" + project + "' >x.csproj && dotnet restore --no-cache",
			want: "http HOST", port: "80"},
		{name: "gem", command: "echo ':sources: [http://HOST/]' >$TMPDIR/gemrc; HOME=$TMPDIR gem fetch --config-file $TMPDIR/gemrc x", want: "http HOST", port: "80"},
		{name: "gradle", command: "mkdir -p $TMPDIR/g && cd $TMPDIR/g && printf '" + build + "' >build.gradle && : >settings.gradle && JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=$TMPDIR gradle --no-daemon -q -g $TMPDIR/gradle t", want: "http HOST", port: "80"},
		{name: "grpc", needs: "python3 -c 'import grpc'", command: `/usr/bin/python3 -c '
import grpc
c = grpc.insecure_channel("HOST:25")
try: grpc.channel_ready_future(c).result(timeout=5)
except grpc.FutureTimeoutError: pass'`, want: "raw PRI * HT", port: "25"},
		{name: "mongosh", command: "mongosh --quiet 'mongodb://HOST/?serverSelectionTimeoutMS=5000' --eval 1", want: "raw ", port: "27017"},
		{name: "mvn", command: "printf '%s' '" + settings + "' >$TMPDIR/s.xml; mvn -q -B -s $TMPDIR/s.xml -Dmaven.repo.local=$TMPDIR/HOST org.example:x:1:y", want: "http HOST", port: "80"},
		{name: "mysql", command: "mysql --connect-timeout=2 -h HOST -u x", want: "raw ", port: "3306"},
		{name: "npx", command: "npm_config_cache=$TMPDIR/npx npx --registry http://HOST/ --fetch-retries=0 -y x", want: "http HOST", port: "80"},
		{name: "php", command: `php -r 'echo file_get_contents("http://HOST/");'`, want: "the web: HOST", port: "80"},
		{name: "pnpm", command: "pnpm view x --registry http://HOST/ --fetch-retries=0", want: "http HOST", port: "80"},
		{name: "requests", needs: "python3 -c 'import requests'", command: `/usr/bin/python3 -c 'import requests; print(requests.get("http://HOST/").text)'`, want: "the web: HOST", port: "80"},
		{name: "rsync", command: "rsync --contimeout=20 rsync://HOST/x $TMPDIR", want: "raw ", port: "873"},
		{name: "ruby", command: `ruby -rnet/http -e 'puts Net::HTTP.get(URI("http://HOST/"))'`, want: "the web: HOST", port: "80"},
		{name: "scp", command: "scp -o BatchMode=yes -o ConnectTimeout=20 HOST:x $TMPDIR", want: "raw SSH-2.0-", port: "22"},
		{name: "uv", command: "UV_CACHE_DIR=$TMPDIR/uv uv pip install --target $TMPDIR/t --allow-insecure-host HOST --index-url http://HOST/ x", want: "http HOST", port: "80"},
		{name: "websocket", needs: "type bun", command: `bun -e 'new WebSocket("ws://HOST/").onerror = () => process.exit()'`, want: "http HOST", port: "80"},
		{name: "wget", command: "wget -qO- --tries=1 --no-check-certificate https://HOST/", want: "tls HOST", port: "443"},
		{name: "yarn", command: "yarn info x --registry http://HOST/ --cache-folder $TMPDIR/yarn --network-timeout 5000", want: "http HOST", port: "80"},
	}...)
	const aws = `AWS_ACCESS_KEY_ID=AKIAEXAMPLEEXAMPLE00 AWS_DEFAULT_REGION=us-east-1 aws --endpoint-url https://aws.allowed.test `
	logins = append(logins, []login{
		{"npm", `printf '//npm.allowed.test/:_authToken=${NPM_TOKEN}\n' >.npmrc; npm whoami --registry https://npm.allowed.test/ --fetch-retries=0 --no-update-notifier --cache $TMPDIR/npm; rm .npmrc`, "logged-in"},
		{"python3", `python3 -c '
try: import requests
except ImportError: print("logged-in"); raise SystemExit
import os
print(requests.get("https://api.allowed.test/", auth=("me", os.environ["TOKEN"])).text)'`, "logged-in"},
		{"node", `node -e 'fetch("https://api.allowed.test/", {headers: {authorization: "Bearer " + process.env.TOKEN}}).then(r => r.text()).then(console.log, e => console.log(e.cause))'`, "logged-in"},
		{"aws", aws + `sts get-caller-identity`, "logged-in"},
		{"aws", `echo x >x; ` + aws + `s3 cp x "s3://bucket/a b"`, "upload: ./x to s3"},
		{"aws", aws + `s3 cp "s3://bucket/a b" y && [ "$(stat -c %s y)" = 20971520 ] && tail -n1 y; rm -f y`, "\nlogged-in"}, // in parts
		{"java", `cat >$TMPDIR/A.java <<'END'
import java.net.*;
public class A { public static void main(String[] a) throws Exception {
	URLConnection c = new URL("https://api.allowed.test/").openConnection();
	c.setRequestProperty("Authorization", "Bearer " + System.getenv("TOKEN"));
	System.out.println(new String(c.getInputStream().readAllBytes())); } }
END
keytool -list -keystore "$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")/lib/security/cacerts" -storepass changeit | grep -c trustedCert && java $TMPDIR/A.java`, "logged-in"},
		{"wget", `wget -qO- --header "Authorization: Bearer $TOKEN" https://api.allowed.test/`, "logged-in"},
	}...)
}

// A thousand connections of one program at once.
func TestThousandConnections(t *testing.T) {
	f := newFixture(t)
	s := startWithTUN(t, f, newOuterNetwork(t).options())
	r := runIn(t, s, f.ws, f.env, "python3", "-c", `
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
async def one(i):
    r, w = await asyncio.open_connection("x.allowed.test", 80)
    w.write(b"GET / HTTP/1.0\r\nHost: h%d\r\n\r\n" % i)
    return b"h%d\n" % i in await r.read()
async def main(): print(sum(await asyncio.gather(*map(one, range(1000)))))
asyncio.run(main())`)
	if strings.TrimSpace(r.output) != "1000" {
		t.Error(r.output)
	}
}
