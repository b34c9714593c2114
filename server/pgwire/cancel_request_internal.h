#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>

#include "server/pgwire/upstream.h"

namespace sluice::server::pgwire {

// Asks the server to cancel what runs on a back end, over a connection of its own, as the protocol
// requires. `then` is called once, possibly before this returns: when the server has acted on the
// request, which it shows by closing that connection, or did not within five seconds. Until then
// the request could still cancel a statement that the back end is sent later. The outcome itself is
// not reported, as in the protocol.
void CancelBackend(boost::asio::io_context& context, const Upstream& upstream, uint32_t process,
                   uint32_t key, std::function<void()> then);

}  // namespace sluice::server::pgwire
