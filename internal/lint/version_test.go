package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"hccl.dev/hccl/internal/log"
)

// The two versions stand in several files, because builds read them there. They must agree.
var versions = []struct{ file, form, want string }{
	{"Makefile", `(?m)^VERSION\s*:?=\s*(\S+)$`, log.Release},
	{"CMakeLists.txt", `project\(hccl VERSION (\S+)`, log.Release},
	{"CHANGELOG.md", `(?m)^## (?:Unreleased: )?(\d\S*)`, log.Release},
	{"Makefile", `(?m)^ABI\s*:?=\s*(\S+)$`, log.ABI},
	{"include/nccl.h", `(?m)^#define NCCL_MAJOR (\d+)`, log.ABI[:1]},
	{"include/nccl.h", `(?m)^#define NCCL_MINOR (\d+)`, log.ABI[2:4]},
	{"include/nccl.h", `(?m)^#define NCCL_PATCH (\d+)`, log.ABI[5:]},
}

func TestVersionsAgree(t *testing.T) {
	for _, v := range versions {
		b, err := os.ReadFile(filepath.Join(root, v.file))
		if err != nil {
			t.Error(err)
			continue
		}
		found := regexp.MustCompile(v.form).FindSubmatch(b)
		if found == nil || string(found[1]) != v.want {
			t.Errorf("%s does not say version %s where it should (%s): change it together with internal/log/configure.go", v.file, v.want, v.form)
		}
	}
}
