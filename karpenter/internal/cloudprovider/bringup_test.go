package cloudprovider_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/bringup-dev/bringup/karpenter/internal/cloudprovider"
	"github.com/bringup-dev/bringup/karpenter/internal/connection"
	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

// bringup stands in for the real one behind a real socket: each call is handed to answer.
type bringup struct {
	providerpb.UnimplementedProviderServer
	socket string
	server *grpc.Server
	mutex  sync.Mutex
	asked  []proto.Message
	answer func(context.Context, proto.Message) (proto.Message, error)
}

func start(t *testing.T, answer func(context.Context, proto.Message) (proto.Message, error)) *bringup {
	t.Helper()
	// The test's own folder has a name too long for a socket.
	folder, err := os.MkdirTemp("", "flex")
	if err != nil {
		t.Fatal(err)
	}
	fake := &bringup{socket: filepath.Join(folder, "provider.sock"), answer: answer}
	fake.serve(t)
	t.Cleanup(func() {
		fake.server.Stop()
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return fake
}

func (b *bringup) serve(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	b.server = grpc.NewServer()
	providerpb.RegisterProviderServer(b.server, b)
	server := b.server
	go func() { _ = server.Serve(listener) }()
}

// provider is Karpenter's side of it.
func (b *bringup) provider(t *testing.T, limit time.Duration) *cloudprovider.CloudProvider {
	t.Helper()
	open, err := connection.Open(&connection.Options{Address: "unix://" + b.socket}, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open.Close() })
	return cloudprovider.New(providerpb.NewProviderClient(open))
}

func (b *bringup) handle(ctx context.Context, request proto.Message) (proto.Message, error) {
	b.mutex.Lock()
	b.asked = append(b.asked, request)
	b.mutex.Unlock()
	return b.answer(ctx, request)
}

// onlyRequest is what was asked, which must have been one thing.
func (b *bringup) onlyRequest(t *testing.T) proto.Message {
	t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.asked) != 1 {
		t.Fatalf("asked %d times: %v", len(b.asked), b.asked)
	}
	return b.asked[0]
}

func handled[Answer proto.Message](ctx context.Context, b *bringup, request proto.Message) (Answer, error) {
	answer, err := b.handle(ctx, request)
	if err != nil {
		var none Answer
		return none, err
	}
	return answer.(Answer), nil
}

func (b *bringup) Create(ctx context.Context, request *providerpb.CreateRequest) (*providerpb.CreateResponse, error) {
	return handled[*providerpb.CreateResponse](ctx, b, request)
}

func (b *bringup) Delete(ctx context.Context, request *providerpb.DeleteRequest) (*providerpb.DeleteResponse, error) {
	return handled[*providerpb.DeleteResponse](ctx, b, request)
}

func (b *bringup) Get(ctx context.Context, request *providerpb.GetRequest) (*providerpb.GetResponse, error) {
	return handled[*providerpb.GetResponse](ctx, b, request)
}

func (b *bringup) List(ctx context.Context, request *providerpb.ListRequest) (*providerpb.ListResponse, error) {
	return handled[*providerpb.ListResponse](ctx, b, request)
}

func (b *bringup) GetInstanceTypes(ctx context.Context, request *providerpb.GetInstanceTypesRequest) (*providerpb.GetInstanceTypesResponse, error) {
	return handled[*providerpb.GetInstanceTypesResponse](ctx, b, request)
}

func (b *bringup) IsDrifted(ctx context.Context, request *providerpb.IsDriftedRequest) (*providerpb.IsDriftedResponse, error) {
	return handled[*providerpb.IsDriftedResponse](ctx, b, request)
}

// always answers the same.
func always(message proto.Message) func(context.Context, proto.Message) (proto.Message, error) {
	return func(context.Context, proto.Message) (proto.Message, error) { return message, nil }
}

// refuses answers with trouble, if there is any, under a status that says nothing about it.
func refuses(code codes.Code, text string, trouble *providerpb.Trouble) func(context.Context, proto.Message) (proto.Message, error) {
	return func(context.Context, proto.Message) (proto.Message, error) {
		refusal := status.New(code, text)
		if trouble != nil {
			detailed, err := refusal.WithDetails(trouble)
			if err != nil {
				return nil, err
			}
			refusal = detailed
		}
		return nil, refusal.Err()
	}
}
