//go:build slow

package packages

func init() { managers = append(managers, slowManagers...) }

var slowManagers = []manager{
	{
		name: "npm", needs: []string{"npm", "node"},
		env: []string{
			"npm_config_registry=REGISTRY/npm", "npm_config_audit=false", "npm_config_fund=false",
			"npm_config_update_notifier=false",
		},
		files:   map[string]string{"package.json": "{}\n"},
		add:     `npm i PACKAGE && node -e 'console.log(require("PACKAGE").name)'`,
		offline: `npm i --offline PACKAGE && node -e 'console.log(require("PACKAGE").name)'`,
	},
	{
		name: "pip", needs: []string{"python3"}, toolchain: pythonToolchain,
		env: []string{
			"PIP_INDEX_URL=REGISTRY/pypi", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
			"PIP_ROOT_USER_ACTION=ignore",
		},
		add: `python3 -m pip install PACKAGE && python3 -c 'import PACKAGE; print(PACKAGE.name)'`,
	},
	{
		name: "cargo", needs: []string{"cargo", "rustc"}, toolchain: `echo "$(rustc --print sysroot)/bin"`,
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/main.rs": "fn main() {}\n",
			".cargo/config.toml": `[source.crates-io]
replace-with = "local"

[source.local]
registry = "sparse+REGISTRY/cargo/index/"
`,
		},
		add:     `cargo add -q PACKAGE && cargo build -q && cargo tree --prefix none | grep -o ^PACKAGE`,
		offline: `cargo add -q --offline PACKAGE && cargo build -q --offline && cargo tree --offline --prefix none | grep -o ^PACKAGE`,
	},
	{
		name: "mvn", needs: []string{"mvn", "java"},
		env: []string{"MAVEN_OPTS=-Duser.home=HOME"}, // which Java takes from the list of users
		files: map[string]string{"template.xml": `<project><modelVersion>4.0.0</modelVersion><artifactId>x</artifactId><packaging>pom</packaging>
<parent><groupId>test</groupId><artifactId>PARENT</artifactId><version>1</version></parent>
<repositories><repository><id>central</id><url>REGISTRY/maven</url></repository></repositories></project>`},
		add:     `sed s/PARENT/PACKAGE/ template.xml > pom.xml && mvn -q -B package && echo PACKAGE`,
		offline: `sed s/PARENT/PACKAGE/ template.xml > pom.xml && mvn -o -q -B package && echo PACKAGE`,
	},
}
