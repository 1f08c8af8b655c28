//go:build unix && slow

package settle

// gitScripts is how many random scripts are run.
const gitScripts = 500
