#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <memory>

namespace sluice::server {

class GatewayScripts;

// The two doors over the same scripts. `scripts` outlives them.
std::unique_ptr<grpc::Service> MakeGatewayService(GatewayScripts& scripts);
std::unique_ptr<grpc::Service> MakeSqlflowService(GatewayScripts& scripts);

}  // namespace sluice::server
