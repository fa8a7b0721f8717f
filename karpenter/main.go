// Command karpenter is Karpenter with bringup as its provider of machines.
package main

import (
	"os"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"

	"github.com/bringup-dev/bringup/karpenter/internal/cloudprovider"
	"github.com/bringup-dev/bringup/karpenter/internal/connection"
	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

func main() {
	ctx, karpenter := operator.NewOperator()
	bringup, err := connection.Open(connection.FromContext(ctx), connection.Limit)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot reach bringup")
		os.Exit(1)
	}
	provider := cloudprovider.New(providerpb.NewProviderClient(bringup))
	overlaid := overlay.Decorate(provider, karpenter.GetClient(), karpenter.InstanceTypeStore)
	cluster := state.NewCluster(karpenter.Clock, karpenter.GetClient(), overlaid)
	karpenter.WithControllers(ctx, controllers.NewControllers(
		ctx,
		karpenter.Manager,
		karpenter.Clock,
		karpenter.GetClient(),
		karpenter.EventRecorder,
		overlaid,
		provider,
		cluster,
		karpenter.InstanceTypeStore,
	)...).Start(ctx)
}
