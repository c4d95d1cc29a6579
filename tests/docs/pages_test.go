// Package docs holds tests of the documents for users: links lead somewhere, pages stand in one order, what the page for beginners
// has typed really runs on the built library, and what is quoted as the library's words is in its sources.
package docs

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "write the feet of the pages anew")

const root = "../.."

// page is a document by its path from the root, with slashes.
type page struct{ path, text string }

func read(t *testing.T, name string) page {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return page{name, string(b)}
}

// pages are all documents for people.
func pages(t *testing.T) (all []page) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "python/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || names == nil {
			t.Fatalf("%s: no document (%v)", pattern, err)
		}
		for _, n := range names {
			rel, err := filepath.Rel(root, n)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, read(t, filepath.ToSlash(rel)))
		}
	}
	return all
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	linked  = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)|<(?:img|source)[^>]* src(?:set)?="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
)

// anchors are the names that links into a page use, made from its headings in the way of the usual viewers: small letters, blanks
// as hyphens, other signs left out, the second of a name with -1 behind it.
func (p page) anchors() map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, h[1])
		for all[name] {
			name += "-1"
		}
		all[name] = true
	}
	return all
}

// Every link within the repository leads to a file, and to a heading of it where it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, found := range linked.FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
			target, anchor, _ := strings.Cut(found[1]+found[2], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			n++
			to := p.path
			if target != "" {
				to = path.Join(path.Dir(p.path), target)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s leads to %s, which is not there", p.path, to)
			} else if anchor != "" && !read(t, to).anchors()[anchor] {
				t.Errorf("%s leads to %s#%s: %s has no such heading", p.path, to, anchor, to)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d links were looked at: the test is blind", n)
	}
}

var (
	indexed = regexp.MustCompile(`(?m)^\d+\. (\[[^\]]+\]\(([a-z]+\.md)\))`)
	foot    = regexp.MustCompile(`\n---\n\n.*\[All pages\]\(README\.md\).*\n$`)
)

// Each page of the manual is in its index, and leads to the page before it and the one after it. -update writes that into the pages
// that people write; in the others the tests that make them have it.
func TestPagesStandInOneOrder(t *testing.T) {
	var order, links []string // names of pages, and the index's links to them
	for _, found := range indexed.FindAllStringSubmatch(read(t, "docs/README.md").text, -1) {
		order, links = append(order, found[2]), append(links, found[1])
	}
	for _, name := range order {
		if !strings.Contains(read(t, "README.md").text, "](docs/"+name+")") {
			t.Errorf("README.md does not link docs/%s", name)
		}
	}
	for _, p := range pages(t) {
		name := path.Base(p.path)
		if path.Dir(p.path) != "docs" || name == "README.md" {
			continue
		}
		at := slices.Index(order, name)
		if at < 0 {
			t.Errorf("%s is not in the list of docs/README.md: add it, then go test ./tests/docs -run Order -update", p.path)
			continue
		}
		want := leads(links, at)
		if strings.HasSuffix(p.text, want) {
			continue
		}
		if !*update {
			t.Errorf("%s does not lead to its neighbours: go test ./tests/docs -run Order -update; it should end with%s", p.path, want)
		} else if err := os.WriteFile(filepath.Join(root, p.path), []byte(foot.ReplaceAllString(p.text, "")+want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// leads is the foot of a page.
func leads(links []string, at int) string {
	text := "[All pages](README.md)"
	if at > 0 {
		text = "Before: " + links[at-1] + " · " + text
	}
	if at < len(links)-1 {
		text += " · Next: " + links[at+1]
	}
	return "\n---\n\n" + text + "\n"
}
