package cases

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/testkit/netns"
)

// An observer of the wire reads the program's data, and where its library lies, unless ranks have a key; the key and the id's secret
// never.
func TestWireIsUnreadable(t *testing.T) {
	needsRoot(t)
	const key = "c2VjcmV0IG9mIGEgdGVzdCBvbmx5IQ=="
	for name, file := range map[string]string{"clear": "", "encrypted": keyFile(t, key+"\n", 0o600)} {
		t.Run(name, func(t *testing.T) {
			l := netns.New(t, 2)
			l.Rail()
			capture := l.Capture(0, 0)
			id := filepath.Join(t.TempDir(), "id")
			out := run(t, []string{"HCCL_ENCRYPTION_KEY_FILE=" + file, "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=ALL"}, build(t, "case_encryption"),
				"data", id, l.Host(0), l.Host(1))
			packets := capture.Stop()
			readable := file == ""
			if found := holds(packets, "data of a user, which nobody else should read"); found != readable {
				t.Errorf("the data cross readable: %v", found)
			}
			if found := holds(packets, "libnccl.so.2"); found != readable {
				t.Errorf("what ranks tell each other crosses readable: %v", found)
			}
			secret, err := os.ReadFile(id)
			if err != nil {
				t.Fatal(err)
			}
			if holds(packets, string(secret[16:32])) || holds(packets, key) || strings.Contains(out, key) {
				t.Error("a secret can be read on the wire, or in the log")
			}
			if told := strings.Contains(out, "connections are encrypted with the key of HCCL_ENCRYPTION_KEY_FILE"); told == readable {
				t.Errorf("the log says that connections are encrypted: %v", told)
			}
		})
	}
}

func holds(packets [][]byte, words string) bool {
	for _, p := range packets {
		if bytes.Contains(p, []byte(words)) {
			return true
		}
	}
	return false
}

func keyFile(t *testing.T, key string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

// A rank with another key than the others, with none, or with one that cannot be used: nobody gets a communicator, all know why.
func TestKeysThatDiffer(t *testing.T) {
	needsRoot(t)
	const key, other = "a key for all ranks, of many bytes", "another key for a rank, of many bytes"
	good := keyFile(t, key, 0o600)
	for name, c := range map[string]struct{ file, word string }{
		"another": {keyFile(t, other, 0o600), "another encryption key"},
		"none":    {"", "encryption key"},
	} {
		t.Run(name, func(t *testing.T) {
			l := netns.New(t, 2)
			l.Rail()
			set := ";HCCL_ENCRYPTION_KEY_FILE="
			out := run(t, nil, build(t, "case_encryption"), "refused", c.word, l.Host(0)+set+good, l.Host(1)+set+c.file)
			if strings.Contains(out, key) || strings.Contains(out, other) {
				t.Errorf("the key is told:\n%s", out)
			}
		})
	}
	for name, c := range map[string]struct{ file, word string }{
		"readable by others": {keyFile(t, key, 0o640), "chmod 600"},
		"too short":          {keyFile(t, "short\n", 0o600), "16"},
		"a folder":           {t.TempDir(), "no regular file"},
		"not there":          {filepath.Join(t.TempDir(), "none"), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			l := netns.New(t, 2)
			set := ";HCCL_ENCRYPTION_KEY_FILE=" + c.file
			run(t, nil, build(t, "case_encryption"), "refused", c.word, l.Host(0)+set, l.Host(1)+set)
		})
	}
}

func TestSetEncryption(t *testing.T) {
	try(t, both, "case_encryption", "call")
}
