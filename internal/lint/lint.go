// Package lint enforces the house rules as tests: which package may import which, where C and unsafe are allowed, what code in
// somebody else's process must not do, and the form of files. It has no code of its own besides its tests.
//
// A rule stands here once it has been said twice. Each failure names file and line, the rule, and what to do instead; a rule that
// turns out wrong is changed here, with the reason in the commit, and not worked around in the code.
//
// The tests walk the source tree and parse it, without types and without running anything; they take a second or two. What needs
// types is go vet's business. The tests look at every file in the tree, also at those not yet committed.
//
// The only thing kept beside the rules is testdata/long.txt, the files that are longer than they should be: they may shrink, not
// grow. "go test ./internal/lint -update" writes it anew, for a reviewer to read in the diff.
package lint
