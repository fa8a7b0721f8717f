package cloudprovider

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/status"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

// How much of a message Karpenter shows on a claim.
const longestMessage = 300

// refusal is the error of a call as Karpenter understands it. Only the typed detail counts: what
// has none, such as a lost connection, is tried again.
func refusal(attempted string, err error) error {
	trouble := troubleIn(err)
	if trouble == nil {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%s, %w", attempted, err)
	}
	because := errors.New(describe(trouble))
	switch trouble.GetClass() {
	case providerpb.Trouble_CAPACITY:
		return cloudprovider.NewInsufficientCapacityError(because)
	case providerpb.Trouble_CLASS_NOT_READY:
		return cloudprovider.NewNodeClassNotReadyError(because)
	case providerpb.Trouble_NOT_FOUND:
		return cloudprovider.NewNodeClaimNotFoundError(because)
	default:
		return fmt.Errorf("%s, %w", attempted, because)
	}
}

// createRefusal also names the cause on the claim, where there is one to name.
func createRefusal(err error) error {
	translated := refusal("creating the machine", err)
	trouble := troubleIn(err)
	if trouble.GetCause() == "" || cloudprovider.IsInsufficientCapacityError(translated) || cloudprovider.IsNodeClassNotReadyError(translated) {
		return translated
	}
	return cloudprovider.NewCreateError(translated, trouble.GetCause(), shorten(trouble.GetMessage()))
}

func troubleIn(err error) *providerpb.Trouble {
	for _, detail := range status.Convert(err).Details() {
		if trouble, ok := detail.(*providerpb.Trouble); ok {
			return trouble
		}
	}
	return nil
}

func describe(trouble *providerpb.Trouble) string {
	text := trouble.GetCause()
	if code := trouble.GetArmCode(); code != "" {
		text += " (" + code + ")"
	}
	return text + ": " + trouble.GetMessage()
}

func shorten(message string) string {
	if letters := []rune(message); len(letters) > longestMessage {
		return string(letters[:longestMessage-3]) + "..."
	}
	return message
}
