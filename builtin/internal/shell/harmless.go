package shell

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// harmless are the variables (path.Match patterns) that commands of remote callers get. They tell where things are
// and which language and terminal programs should assume, and hold no credentials. The setting bash.env.pass adds to
// them.
var harmless = strings.Fields(`
	PATH HOME USER LOGNAME SHELL HOSTNAME TERM TZ TMPDIR LANG LANGUAGE LC_* LOCALE_ARCHIVE MANPATH INFOPATH CI
	XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR XDG_CONFIG_DIRS XDG_DATA_DIRS
	HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
	SSL_CERT_FILE SSL_CERT_DIR NIX_SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO NODE_EXTRA_CA_CERTS
	GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOOS GOARCH GOEXPERIMENT GOTOOLCHAIN GOWORK
	GOPROXY GOPRIVATE GONOPROXY GOSUMDB GONOSUMDB GOINSECURE CGO_ENABLED
	JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME SDKMAN_DIR
	ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME DOTNET_ROOT DOTNET_CLI_HOME
	NODE_ENV NODE_PATH NVM_DIR NVM_BIN FNM_DIR VOLTA_HOME COREPACK_HOME PNPM_HOME BUN_INSTALL DENO_DIR DENO_INSTALL
	VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
	PIPX_HOME POETRY_HOME UV_CACHE_DIR UV_PYTHON_INSTALL_DIR
	CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS
	RBENV_ROOT GEM_HOME GEM_PATH BUNDLE_PATH COMPOSER_HOME PERL5LIB PERL_LOCAL_LIB_ROOT OPAMROOT GHCUP_INSTALL_BASE_PREFIX
	ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY NIX_PATH NIX_PROFILES
	CC CXX AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH LIBRARY_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
	MAKEFLAGS CUDA_HOME CUDA_PATH CUDA_VISIBLE_DEVICES
`)

// credentials matches the user and password in an address, such as that of a proxy.
var credentials = regexp.MustCompile(`(^|//)[^/?#\s]*@`)

// Inherited returns the part of the host's environment that commands get, for derive: with all set everything,
// otherwise the harmless variables without credentials and the variables that match a pattern in pass.
func Inherited(pass []string, all bool) []string {
	env := os.Environ()
	if all {
		return env
	}
	return slices.DeleteFunc(env, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return !matchAny(pass, name) && (!matchAny(harmless, name) || credentials.MatchString(value))
	})
}
