package packages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// startRegistry serves the packages in the forms of all managers, and returns its address.
func startRegistry(t *testing.T, packages ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("http://localhost:%d", listener.Addr().(*net.TCPAddr).Port)
	files := map[string][]byte{"/cargo/index/config.json": fmt.Appendf(nil, `{"dl":"%s/cargo/{crate}.crate"}`, address)}
	for _, name := range packages {
		addGo(files, name)
		addNPM(files, address, name)
		addWheel(files, name)
		addCrate(files, name)
		addMaven(files, name)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path[:6] == "/pypi/" {
			w.Header().Set("Content-Type", "text/html")
		}
		w.Write(body)
	}))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return address
}

// archived is files by their names.
type archived map[string]string

func (a archived) zip() []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range a {
		f, _ := w.Create(name) // no error in memory
		f.Write([]byte(text))
	}
	w.Close()
	return b.Bytes()
}

func (a archived) tgz() []byte {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for name, text := range a {
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		w.Write([]byte(text))
	}
	w.Close()
	compressed.Close()
	return b.Bytes()
}

func addGo(files map[string][]byte, name string) {
	const version = "v1.0.0"
	module, dir := "example.test/"+name, "/go/example.test/"+name+"/@v/"
	mod := "module " + module + "\n"
	files[dir+"list"] = []byte(version + "\n")
	files[dir+version+".info"] = []byte(`{"Version":"` + version + `"}`)
	files[dir+version+".mod"] = []byte(mod)
	in := module + "@" + version + "/"
	files[dir+version+".zip"] = archived{in + "go.mod": mod, in + "x.go": "package " + name + "\n"}.zip()
}

func addNPM(files map[string][]byte, address, name string) {
	pack := archived{
		"package/package.json": `{"name":"` + name + `","version":"1.0.0"}`,
		"package/index.js":     `exports.name = "` + name + `"`,
	}.tgz()
	sum := sha512.Sum512(pack)
	files["/npm/"+name+".tgz"] = pack
	const format = `{"name":%[1]q,"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":%[1]q,"version":"1.0.0",
"dist":{"tarball":"%[2]s/npm/%[1]s.tgz","integrity":"sha512-%[3]s"}}}}`
	files["/npm/"+name] = fmt.Appendf(nil, format, name, address, base64.StdEncoding.EncodeToString(sum[:]))
}

func addWheel(files map[string][]byte, name string) {
	wheel, info := name+"-1.0.0-py3-none-any.whl", name+"-1.0.0.dist-info/"
	files["/pypi/"+name+"/"] = []byte(`<a href="../` + wheel + `">` + wheel + `</a>`)
	files["/pypi/"+wheel] = archived{
		name + ".py":       `name = "` + name + `"`,
		info + "METADATA":  "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0.0\n",
		info + "WHEEL":     "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":    name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
		info + "top_level": name + "\n",
	}.zip()
}

func addCrate(files map[string][]byte, name string) {
	crate := archived{
		name + "-1.0.0/Cargo.toml": "[package]\nname = \"" + name + "\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
		name + "-1.0.0/src/lib.rs": "",
	}.tgz()
	sum := sha256.Sum256(crate)
	files["/cargo/"+name+".crate"] = crate
	const line = `{"name":%q,"vers":"1.0.0","deps":[],"cksum":%q,"features":{},"yanked":false}` + "\n"
	files["/cargo/index/"+name[:2]+"/"+name[2:4]+"/"+name] = fmt.Appendf(nil, line, name, hex.EncodeToString(sum[:]))
}

func addMaven(files map[string][]byte, name string) {
	files["/maven/test/"+name+"/1/"+name+"-1.pom"] = []byte(`<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>` +
		name + `</artifactId><version>1</version><packaging>pom</packaging></project>`)
}
