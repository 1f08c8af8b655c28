// Package wildcard matches names and texts against the three kinds of wildcards that the guard meets: those in rules on text
// ([Text]), those in an element of a gitignore pattern ([Element]), and those that shells expand ([Shell], [Expansion]).
package wildcard
