import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.MethodDescriptorProto;
import com.google.protobuf.DescriptorProtos.ServiceDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServiceDescriptor;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.ProtoFileDescriptorSupplier;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.List;

/**
 * The service of gRPC's interoperability cases, by grpc-java, with reflection:
 * {@code java -cp 'lib/*' InteropServer.java PORT}. The server of grpc-java itself is not published as an artifact.
 * Messages are made from their descriptors, so that no compiler of .proto files is needed.
 */
public final class InteropServer {
    private static final String PACKAGE = "grpc.testing";
    private static final String SERVICE = PACKAGE + ".TestService";

    /** A message per line with its fields: name=number:type, with a * for repeated ones. */
    private static final String MESSAGES = """
            Empty
            BoolValue value=1:bool
            Payload type=1:int32 body=2:bytes
            EchoStatus code=1:int32 message=2:string
            SimpleRequest response_type=1:int32 response_size=2:int32 payload=3:Payload\
             response_compressed=6:BoolValue response_status=7:EchoStatus
            SimpleResponse payload=1:Payload
            StreamingInputCallRequest payload=1:Payload
            StreamingInputCallResponse aggregated_payload_size=1:int32
            ResponseParameters size=1:int32 interval_us=2:int32
            StreamingOutputCallRequest response_type=1:int32 response_parameters=2:*ResponseParameters\
             payload=3:Payload response_status=7:EchoStatus
            StreamingOutputCallResponse payload=1:Payload
            """;

    /** A method per line with its messages; a * marks a stream. */
    private static final String METHODS = """
            EmptyCall Empty Empty
            UnaryCall SimpleRequest SimpleResponse
            StreamingOutputCall StreamingOutputCallRequest *StreamingOutputCallResponse
            StreamingInputCall *StreamingInputCallRequest StreamingInputCallResponse
            FullDuplexCall *StreamingOutputCallRequest *StreamingOutputCallResponse
            """;

    private static final FileDescriptor FILE = file();

    public static void main(String[] args) throws Exception {
        NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])))
                .addService(service())
                .addService(ProtoReflectionServiceV1.newInstance())
                .intercept(new MetadataEcho())
                .build()
                .start()
                .awaitTermination();
    }

    private static ServerServiceDefinition service() {
        var empty = method("EmptyCall", MethodType.UNARY);
        var unary = method("UnaryCall", MethodType.UNARY);
        var output = method("StreamingOutputCall", MethodType.SERVER_STREAMING);
        var input = method("StreamingInputCall", MethodType.CLIENT_STREAMING);
        var both = method("FullDuplexCall", MethodType.BIDI_STREAMING);
        var description = ServiceDescriptor.newBuilder(SERVICE).setSchemaDescriptor((ProtoFileDescriptorSupplier) () -> FILE);
        List.of(empty, unary, output, input, both).forEach(description::addMethod);
        return ServerServiceDefinition.builder(description.build())
                .addMethod(empty, ServerCalls.asyncUnaryCall((request, reply) -> end(reply, message("Empty").build())))
                .addMethod(unary, ServerCalls.asyncUnaryCall(InteropServer::unaryCall))
                .addMethod(output, ServerCalls.asyncServerStreamingCall((request, replies) -> {
                    sendAll(request, replies);
                    replies.onCompleted();
                }))
                .addMethod(input, ServerCalls.asyncClientStreamingCall(SumOfSizes::new))
                .addMethod(both, ServerCalls.asyncBidiStreamingCall(Duplex::new))
                .build();
    }

    private static void unaryCall(DynamicMessage request, StreamObserver<DynamicMessage> reply) {
        if (rejects(request, reply)) {
            return;
        }
        var compressed = (DynamicMessage) request.getField(field(request, "response_compressed"));
        if ((boolean) compressed.getField(field(compressed, "value"))) {
            ((ServerCallStreamObserver<DynamicMessage>) reply).setCompression("gzip");
        }
        int size = (int) request.getField(field(request, "response_size"));
        end(reply, withPayload("SimpleResponse", size));
    }

    /** Ends the call with the status of its request, if that has one. */
    private static boolean rejects(DynamicMessage request, StreamObserver<DynamicMessage> reply) {
        if (!request.hasField(field(request, "response_status"))) {
            return false;
        }
        var status = (DynamicMessage) request.getField(field(request, "response_status"));
        int code = (int) status.getField(field(status, "code"));
        var text = (String) status.getField(field(status, "message"));
        reply.onError(Status.fromCodeValue(code).withDescription(text).asRuntimeException());
        return true;
    }

    private static void sendAll(DynamicMessage request, StreamObserver<DynamicMessage> replies) {
        for (Object each : (List<?>) request.getField(field(request, "response_parameters"))) {
            var parameters = (DynamicMessage) each;
            sleep((int) parameters.getField(field(parameters, "interval_us")));
            int size = (int) parameters.getField(field(parameters, "size"));
            replies.onNext(withPayload("StreamingOutputCallResponse", size));
        }
    }

    private static void sleep(int micros) {
        try {
            Thread.sleep(micros / 1000);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Counts the bytes of all requests. */
    private static final class SumOfSizes implements StreamObserver<DynamicMessage> {
        private final StreamObserver<DynamicMessage> reply;
        private int size;

        SumOfSizes(StreamObserver<DynamicMessage> reply) {
            this.reply = reply;
        }

        @Override
        public void onNext(DynamicMessage request) {
            var payload = (DynamicMessage) request.getField(field(request, "payload"));
            size += ((ByteString) payload.getField(field(payload, "body"))).size();
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onCompleted() {
            var sum = message("StreamingInputCallResponse");
            end(reply, sum.setField(sum.getDescriptorForType().findFieldByNumber(1), size).build());
        }
    }

    /** Responds to each request as it comes. */
    private static final class Duplex implements StreamObserver<DynamicMessage> {
        private final StreamObserver<DynamicMessage> replies;
        private boolean hasEnded;

        Duplex(StreamObserver<DynamicMessage> replies) {
            this.replies = replies;
        }

        @Override
        public void onNext(DynamicMessage request) {
            hasEnded |= rejects(request, replies);
            if (!hasEnded) {
                sendAll(request, replies);
            }
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onCompleted() {
            if (!hasEnded) {
                replies.onCompleted();
            }
        }
    }

    /** Sends metadata of the cases back: in the head, and in the trailers. */
    private static final class MetadataEcho implements ServerInterceptor {
        private static final Metadata.Key<String> INITIAL =
                Metadata.Key.of("x-grpc-test-echo-initial", Metadata.ASCII_STRING_MARSHALLER);
        private static final Metadata.Key<byte[]> TRAILING =
                Metadata.Key.of("x-grpc-test-echo-trailing-bin", Metadata.BINARY_BYTE_MARSHALLER);

        @Override
        public <Q, R> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, R> call, Metadata received, ServerCallHandler<Q, R> next) {
            return next.startCall(new SimpleForwardingServerCall<>(call) {
                @Override
                public void sendHeaders(Metadata head) {
                    copy(INITIAL, received, head);
                    super.sendHeaders(head);
                }

                @Override
                public void close(Status status, Metadata trailers) {
                    copy(TRAILING, received, trailers);
                    super.close(status, trailers);
                }
            }, received);
        }

        private static <T> void copy(Metadata.Key<T> key, Metadata from, Metadata to) {
            if (from.containsKey(key)) {
                to.put(key, from.get(key));
            }
        }
    }

    private static void end(StreamObserver<DynamicMessage> reply, DynamicMessage last) {
        reply.onNext(last);
        reply.onCompleted();
    }

    private static DynamicMessage withPayload(String type, int size) {
        var payload = message("Payload");
        payload.setField(payload.getDescriptorForType().findFieldByName("body"), ByteString.copyFrom(new byte[size]));
        var around = message(type);
        return around.setField(around.getDescriptorForType().findFieldByName("payload"), payload.build()).build();
    }

    private static DynamicMessage.Builder message(String type) {
        return DynamicMessage.newBuilder(FILE.findMessageTypeByName(type));
    }

    private static FieldDescriptor field(DynamicMessage of, String name) {
        return of.getDescriptorForType().findFieldByName(name);
    }

    private static MethodDescriptor<DynamicMessage, DynamicMessage> method(String name, MethodType type) {
        var described = FILE.findServiceByName("TestService").findMethodByName(name);
        return MethodDescriptor.<DynamicMessage, DynamicMessage>newBuilder()
                .setType(type)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, name))
                .setRequestMarshaller(marshaller(described.getInputType()))
                .setResponseMarshaller(marshaller(described.getOutputType()))
                .build();
    }

    private static MethodDescriptor.Marshaller<DynamicMessage> marshaller(Descriptor type) {
        return ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(type));
    }

    private static FileDescriptor file() {
        var file = FileDescriptorProto.newBuilder().setName("grpc_interop.proto").setPackage(PACKAGE).setSyntax("proto3");
        MESSAGES.lines().forEach(line -> file.addMessageType(messageType(line.split(" "))));
        var service = ServiceDescriptorProto.newBuilder().setName("TestService");
        METHODS.lines().forEach(line -> service.addMethod(methodOf(line.split(" "))));
        try {
            return FileDescriptor.buildFrom(file.addService(service).build(), new FileDescriptor[0]);
        } catch (DescriptorValidationException invalid) {
            throw new IllegalStateException(invalid);
        }
    }

    private static DescriptorProto messageType(String[] words) {
        var type = DescriptorProto.newBuilder().setName(words[0]);
        for (String word : List.of(words).subList(1, words.length)) {
            String[] parts = word.split("[=:]");
            var field = FieldDescriptorProto.newBuilder().setName(parts[0]).setNumber(Integer.parseInt(parts[1]));
            String of = parts[2].replace("*", "");
            field.setLabel(
                    of.equals(parts[2])
                            ? FieldDescriptorProto.Label.LABEL_OPTIONAL
                            : FieldDescriptorProto.Label.LABEL_REPEATED);
            if (Character.isUpperCase(of.charAt(0))) {
                field.setType(FieldDescriptorProto.Type.TYPE_MESSAGE).setTypeName("." + PACKAGE + "." + of);
            } else {
                field.setType(FieldDescriptorProto.Type.valueOf("TYPE_" + of.toUpperCase()));
            }
            type.addField(field);
        }
        return type.build();
    }

    private static MethodDescriptorProto methodOf(String[] words) {
        return MethodDescriptorProto.newBuilder()
                .setName(words[0])
                .setInputType("." + PACKAGE + "." + words[1].replace("*", ""))
                .setClientStreaming(words[1].startsWith("*"))
                .setOutputType("." + PACKAGE + "." + words[2].replace("*", ""))
                .setServerStreaming(words[2].startsWith("*"))
                .build();
    }
}
