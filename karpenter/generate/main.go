// Command generate writes internal/providerpb from the proto file, and needs no protoc: its compiler
// is a library, and its two plugins are tools of this module.
//
//	go run ./generate
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// Paths are seen from this module's folder.
const (
	sources = "../proto"
	source  = "bringup/flex/v1/provider.proto"
	module  = "github.com/bringup-dev/bringup/karpenter"
)

func main() {
	files, err := generate(context.Background(), ".")
	for path, content := range files {
		err = errors.Join(err, os.WriteFile(path, content, 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate returns what belongs into which file of the module in folder.
func generate(ctx context.Context, folder string) (map[string][]byte, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: []string{filepath.Join(folder, sources)},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      proto.String("module=" + module),
		ProtoFile:      withImports(compiled),
	}
	files := map[string][]byte{}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		answer, err := run(ctx, folder, plugin, request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", plugin, err)
		}
		for _, file := range answer.GetFile() {
			files[filepath.Join(folder, file.GetName())] = []byte(file.GetContent())
		}
	}
	return files, nil
}

// withImports returns files, each after what it imports, as plugins demand.
func withImports(files linker.Files) []*descriptorpb.FileDescriptorProto {
	var sorted []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var visit func(file protoreflect.FileDescriptor)
	visit = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for index := range file.Imports().Len() {
			visit(file.Imports().Get(index).FileDescriptor)
		}
		sorted = append(sorted, protoutil.ProtoFromFileDescriptor(file))
	}
	for _, file := range files {
		visit(file)
	}
	return sorted
}

// run hands a request to a plugin as protoc would.
func run(ctx context.Context, folder, plugin string, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", "tool", plugin)
	command.Dir = folder
	command.Stdin = bytes.NewReader(input)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, err
	}
	answer := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, errors.New(answer.GetError())
	}
	return answer, nil
}
