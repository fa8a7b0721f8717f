// Command karpenter is Karpenter with bringup as its provider of machines.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/awslabs/operatorpkg/serrors"
	"github.com/go-logr/zapr"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/bringup-dev/bringup/karpenter/internal/cloudprovider"
	"github.com/bringup-dev/bringup/karpenter/internal/connection"
	"github.com/bringup-dev/bringup/karpenter/internal/definitions"
	"github.com/bringup-dev/bringup/karpenter/internal/providerpb"
)

// The pause between two checks for missing definitions.
const pause = 2 * time.Second

// waitForDefinitions runs first: an operator that is created before the definitions exist never recovers.
func waitForDefinitions() error {
	ctx := injection.WithOptionsOrDie(context.Background(), options.Injectables...)
	// Only the first call sets the logger, so this is the logger that the operator would set.
	log.SetLogger(serrors.NewLogger(zapr.NewLogger(logging.NewLogger(ctx, "controller"))))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	port := options.FromContext(ctx).HealthProbePort
	listen := func() (net.Listener, error) { return net.Listen("tcp", fmt.Sprintf(":%d", port)) }
	return definitions.Wait(ctx, resources, listen, pause)
}

func main() {
	if err := waitForDefinitions(); err != nil {
		log.FromContext(context.Background()).Error(err, "cannot wait for definitions")
		os.Exit(1)
	}
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
