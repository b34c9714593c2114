#pragma once

#include <cstdint>
#include <string>

// Random numbers that cannot be guessed.
namespace sluice::server::pgwire {

std::string RandomToken();  // 64 hexadecimal digits
uint32_t RandomKey();
std::string RandomSalt();  // 16 bytes

}  // namespace sluice::server::pgwire
