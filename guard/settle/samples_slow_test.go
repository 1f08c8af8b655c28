//go:build unix && slow

package settle

// gitScripts is how many random scripts are run, with -samples=1.
const gitScripts = 40
