#pragma once

#include <memory>

namespace sluice::server {

class GatewayScripts;
namespace pgwire {
class StatementService;
}

// Runs the statements of the PostgreSQL door's sessions among the gateway's scripts.
std::unique_ptr<pgwire::StatementService> MakeWireStatements(GatewayScripts& scripts);

}  // namespace sluice::server
