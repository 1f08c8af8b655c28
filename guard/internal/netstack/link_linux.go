package netstack

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// tunLink passes packets between a stack and a TUN device. The queue of its Endpoint is not used: packets are written
// to the device at once, which does not wait.
type tunLink struct {
	*channel.Endpoint
	device  *os.File
	raw     syscall.RawConn
	reading sync.WaitGroup
}

// Link returns the link of a TUN device, a file that does not block. It ends when the file is closed, and the file is
// closed with the network.
func Link(device *os.File) (stack.LinkEndpoint, error) {
	raw, err := device.SyscallConn()
	if err != nil {
		return nil, err
	}
	l := &tunLink{Endpoint: channel.New(0, MTU, ""), device: device, raw: raw}
	l.LinkEPCapabilities = stack.CapabilityRXChecksumOffload // packets of this machine's kernel
	return l, nil
}

// Attach implements [stack.LinkEndpoint].
func (l *tunLink) Attach(d stack.NetworkDispatcher) {
	l.Endpoint.Attach(d)
	if d != nil {
		l.reading.Go(l.read)
	}
}

// read passes packets of the device to the stack until the device is closed.
func (l *tunLink) read() {
	b := make([]byte, MTU)
	for {
		n, err := l.device.Read(b)
		if err != nil {
			return
		}
		if header.IPVersion(b[:n]) != header.IPv4Version {
			continue
		}
		packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b[:n])})
		l.InjectInbound(header.IPv4ProtocolNumber, packet)
		packet.DecRef()
	}
}

// WritePackets implements [stack.LinkEndpoint]. What the device does not take is lost, as on any network.
func (l *tunLink) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	for i, packet := range list.AsSlice() {
		parts := packet.AsSlices()
		if err := l.raw.Write(func(fd uintptr) bool { _, _ = unix.Writev(int(fd), parts); return true }); err != nil {
			return i, &tcpip.ErrClosedForSend{}
		}
	}
	return list.Len(), nil
}

// Close implements [stack.LinkEndpoint].
func (l *tunLink) Close() { l.device.Close() }

// Wait implements [stack.LinkEndpoint].
func (l *tunLink) Wait() { l.reading.Wait() }
