package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func Test59GeneratedCodeIsInStepWithTheProtoFile(t *testing.T) {
	const folder = ".."
	files, err := generate(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		present, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(present, content) {
			t.Errorf("%s is stale: run go run ./generate", path)
		}
	}
	present, err := filepath.Glob(filepath.Join(folder, "internal/providerpb/*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || len(present) != len(files) {
		t.Errorf("%d files are generated, %v are present", len(files), present)
	}
}
