package release

import (
	"bytes"
	"encoding/json"
	"image"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/toolhost/toolhost/integration/host"
)

// registryName is what the registry, the images and the bundle call this server.
const registryName = "io.github.toolhost/toolhost"

// repositoryURL is where releases are.
const repositoryURL = "https://github.com/toolhost/toolhost"

func readRelease(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// holds reports whether the binary takes a command line. A flag that is not there is found before anything is
// done, so that --help after the line keeps it from being carried out.
func holds(t *testing.T, args []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), host.Binary, append(slices.Clone(args), "--help")...)
	cmd.Env = host.CleanEnv(host.TempDir(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("toolhost %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestBundleManifest holds the manifest of the bundle for Claude Desktop against the binary and the schema 0.3.
func TestBundleManifest(t *testing.T) {
	type launch struct {
		Command string
		Args    []string
	}
	var m struct {
		ManifestVersion string `json:"manifest_version"`
		Name, Version   string
		Icon            string
		Server          struct {
			Type, EntryPoint string
			Config           struct {
				launch
				Overrides map[string]launch `json:"platform_overrides"`
			} `json:"mcp_config"`
		}
		Tools []struct{ Name, Description string }
		User  map[string]struct {
			Type               string
			Multiple, Required bool
			Default            any
		} `json:"user_config"`
	}
	if err := json.Unmarshal(readRelease(t, ".release/bundle/manifest.json"), &m); err != nil {
		t.Fatal(err)
	}
	if icon, _, err := image.DecodeConfig(bytes.NewReader(readRelease(t,
		filepath.Join(".release/bundle", m.Icon)))); err != nil || icon.Width != 512 || icon.Height != 512 {
		t.Errorf("the icon %q: %+v, %v; want 512 pixels each way", m.Icon, icon, err)
	}
	if m.ManifestVersion != "0.3" || m.Name != "toolhost" || m.Version != "0.0.0" || m.Server.Type != "binary" {
		t.Errorf("%+v", m)
	}
	if roots := m.User["roots"]; roots.Type != "directory" || !roots.Multiple || !roots.Required ||
		roots.Default != nil {
		t.Errorf("roots: %+v", roots)
	}
	var served, told []string
	for _, tool := range listTools(t) {
		served = append(served, tool.Name)
	}
	for _, tool := range m.Tools {
		told = append(told, tool.Name)
	}
	slices.Sort(served)
	if !slices.Equal(served, told) {
		t.Errorf("the manifest has the tools %v, the binary %v", told, served)
	}
	// Several directories become several arguments only where an argument is the variable alone.
	if !slices.Equal(m.Server.Config.Args, []string{"stdio", "${user_config.roots}"}) {
		t.Errorf("args: %q", m.Server.Config.Args)
	}
	holds(t, []string{"stdio", host.TempDir(t), host.TempDir(t)})
	script := string(readRelease(t, ".release/mcpb"))
	for _, command := range []string{m.Server.Config.Command, m.Server.Config.Overrides["win32"].Command} {
		if name, ok := strings.CutPrefix(command, "${__dirname}/server/"); !ok ||
			!strings.Contains(script, " "+name+" ") {
			t.Errorf("%q is not packed", command)
		}
	}
}

// TestRegistryEntry holds the entry for the MCP registry against the rules of its schema (2025-12-11).
func TestRegistryEntry(t *testing.T) {
	type argument struct {
		Type, Name, Value string
		Variables         map[string]any
	}
	var s struct {
		Schema                            string `json:"$schema"`
		Name, Title, Description, Version string
		Repository                        struct{ URL, Source string }
		Packages                          []struct {
			RegistryType, Identifier, FileSha256, Version string
			RuntimeArguments, PackageArguments            []argument
			Transport                                     struct{ Type string }
		}
	}
	raw := readRelease(t, ".release/server.json")
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if s.Schema != "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json" ||
		s.Name != registryName ||
		s.Repository.URL != repositoryURL || s.Repository.Source != "github" || s.Version != "0.0.0" {
		t.Errorf("%+v", s)
	}
	if n := len(s.Description); n == 0 || n > 100 {
		t.Errorf("a description of %d characters; up to 100 are taken", n)
	}
	variable := regexp.MustCompile(`\{(\w+)\}`)
	for _, p := range s.Packages {
		if p.Transport.Type != "stdio" || !strings.Contains(p.Identifier, s.Version) {
			t.Errorf("%+v", p)
		}
		switch p.RegistryType {
		case "mcpb":
			if !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(p.FileSha256) ||
				!strings.HasPrefix(p.Identifier, repositoryURL+"/releases/download/v") {
				t.Errorf("%+v", p)
			}
		case "oci":
			if p.Version != "" || p.FileSha256 != "" {
				t.Errorf("the version of an image stands in its name: %+v", p)
			}
			var args []string
			for _, a := range p.PackageArguments {
				if a.Type == "named" {
					args = append(args, a.Name)
				}
				args = append(args, a.Value)
			}
			holds(t, args)
		default:
			t.Errorf("a package of type %q", p.RegistryType)
		}
		for _, a := range append(p.RuntimeArguments, p.PackageArguments...) {
			for _, m := range variable.FindAllStringSubmatch(a.Value, -1) {
				if _, ok := a.Variables[m[1]]; !ok {
					t.Errorf("%s %s: the variable %s is not described", a.Name, a.Value, m[1])
				}
			}
		}
	}
	dir := host.TempDir(t)
	bundles := map[string]string{ // the content of each, and its SHA-256
		"macos":   "a0c0485eff9c817deee7190edf264622b1677fc992920657411b36a6aed48f83",
		"windows": "340d600392818df2413382dc7d8325c360d83ea49a262d31760348484bbc10b5",
	}
	for system := range bundles {
		host.Must(t, os.WriteFile(filepath.Join(dir, "toolhost-"+system+".mcpb"), []byte(system), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), "../../.release/registry", "1.2.3", dir).Output()
	if err != nil || bytes.Contains(out, []byte("0.0.0")) || !bytes.Contains(out, []byte(`"version": "1.2.3"`)) {
		t.Errorf("%v:\n%s", err, out)
	}
	for system, digest := range bundles {
		if want := "toolhost-" + system + ".mcpb\",\n      \"fileSha256\": \"" +
			digest; !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// TestContainerCommands holds what Dockerfile, compose file, unit and manifest tell the binary against it.
func TestContainerCommands(t *testing.T) {
	docker := string(readRelease(t, ".release/Dockerfile"))
	lines := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindAllStringSubmatch(docker, -1)
	if len(lines) != 2 {
		t.Fatalf("the Dockerfile has %d commands", len(lines))
	}
	for _, line := range lines {
		var args []string
		if err := json.Unmarshal([]byte(line[1]), &args); err != nil {
			t.Fatal(err)
		}
		holds(t, args)
	}
	if n := strings.Count(docker, `io.modelcontextprotocol.server.name="`+registryName+`"`); n != 2 {
		t.Errorf("%d of 2 images say which server of the registry they are", n)
	}
	if n := strings.Count(docker, "\nUSER 65532:65532\n"); n != 2 {
		t.Errorf("%d of 2 images have a user of their own", n)
	}

	var compose struct {
		Services map[string]struct {
			Command     []string
			SecurityOpt []string `yaml:"security_opt"`
			Ports       []string
		}
	}
	if err := yaml.Unmarshal(readRelease(t, ".release/compose.yaml"), &compose); err != nil {
		t.Fatal(err)
	}
	service := compose.Services["toolhost"]
	holds(t, service.Command)
	for _, port := range service.Ports {
		if slices.Contains(service.Command, "--insecure-plain-http") && !strings.HasPrefix(port, "127.0.0.1:") {
			t.Errorf("plain HTTP is published as %s", port)
		}
	}
	for _, option := range service.SecurityOpt {
		if profile, ok := strings.CutPrefix(option, "seccomp="); ok {
			readRelease(t, filepath.Join(".release", profile))
		}
	}

	for _, name := range []string{"toolhost.service", "toolhost@.service"} {
		unit := string(readRelease(t, ".release/systemd/"+name))
		start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/toolhost (.*)$`).FindStringSubmatch(unit)
		if start == nil {
			t.Fatalf("the unit %s starts nothing", name)
		}
		holds(t, strings.Fields(strings.ReplaceAll(start[1], "$TOOLHOST_ARGS", "--root /tmp --listen 127.0.0.1:8401")))
	}
	if !strings.Contains(string(readRelease(t, ".release/systemd/toolhost.socket")), "ListenStream=127.0.0.1:8377\n") {
		t.Error("the socket is not the default address")
	}
}

// A podSpec is what is examined of a pod.
type podSpec struct {
	Containers []struct {
		Image          string
		Args           []string
		ReadinessProbe struct {
			HTTPGet struct{ Path string } `yaml:"httpGet"`
		} `yaml:"readinessProbe"`
		SecurityContext map[string]any `yaml:"securityContext"`
	}
}

// TestKubernetes holds the pods of workspaces and of their server against the binary: arguments, the probes, what kustomize
// replaces.
func TestKubernetes(t *testing.T) {
	const dir = ".release/agent-sandbox/"
	read := func(name string, into any) {
		t.Helper()
		if err := yaml.Unmarshal(readRelease(t, dir+name), into); err != nil {
			t.Fatal(err)
		}
	}
	var template struct {
		Spec struct {
			PodTemplate struct{ Spec podSpec } `yaml:"podTemplate"`
		}
	}
	var deployment struct {
		Spec struct{ Template struct{ Spec podSpec } }
	}
	var all, front struct {
		Resources, Configurations []string
		Images                    []struct{ Name string }
	}
	read("template.yaml", &template)
	read("front/front.yaml", &deployment) // the first document
	read("kustomization.yaml", &all)
	read("front/kustomization.yaml", &front)
	for _, file := range slices.Concat(all.Resources, all.Configurations) {
		readRelease(t, dir+file)
	}
	for _, file := range front.Resources {
		readRelease(t, dir+"front/"+file)
	}
	for _, pod := range []podSpec{template.Spec.PodTemplate.Spec, deployment.Spec.Template.Spec} {
		c := pod.Containers[0]
		holds(t, c.Args)
		if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.SecurityContext["readOnlyRootFilesystem"] != true ||
			c.SecurityContext["allowPrivilegeEscalation"] != false {
			t.Errorf("the container is %+v", c)
		}
		if len(all.Images) != 1 || all.Images[0].Name != c.Image {
			t.Errorf("kustomize replaces %+v, not %s", all.Images, c.Image)
		}
	}
}
