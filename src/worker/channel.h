#pragma once
// The worker's end of the pipe to the command line.

#include "base/json.h"
#include "protocol/event.h"
#include "twinkle/error.h"

#include <string>

namespace twinkle::worker {

class Channel {
public:
    // Writes JSON lines to this descriptor.
    explicit Channel(int descriptor) : descriptor_(descriptor) {}

    // Sent before each step, so that the reader knows where the worker died.
    void stage(const std::string& stage, const std::string& what) const;
    void progress(std::size_t done, std::size_t total, const std::string& what) const;
    void warning(const std::string& text) const;
    void trace(const std::string& text) const;  // shown with -vv
    void result(const base::Json& result) const;
    void error(const Error& error) const;

private:
    void send(const protocol::Event& event) const;

    int descriptor_;
};

}  // namespace twinkle::worker
