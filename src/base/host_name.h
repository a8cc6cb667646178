#pragma once
// A name for the machine that process numbers belong to.

#include <string>

namespace twinkle::base {

// The host's name as Python's filelock writes it: processes of two containers of one host are told
// apart by the namespace that their numbers belong to. Never empty.
std::string host_name();

// Whether a process of this host_name() is gone.
bool is_gone(int process);

}  // namespace twinkle::base
